package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

type userKey struct{}

// byUser makes the gateway of a rig one of several users: who a client is, is what as says.
func byUser(r *rig) {
	r.g.cfg.Who = func(ctx context.Context) Who {
		user, _ := ctx.Value(userKey{}).(string)
		return Who{User: user, Rights: MayPrompt | MayApprove | MayGrant}
	}
}

// as connects a client of a user.
func (r *rig) as(user string, version int, change ...func(*acp.Client)) *client {
	r.t.Helper()
	return r.connectIn(context.WithValue(context.Background(), userKey{}, user), version, change...)
}

// listed returns the sessions that a client finds.
func (c *client) listed(t *testing.T) (ids []acp.SessionID) {
	t.Helper()
	for info, err := range c.conn.ListSessions(t.Context(), acp.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.SessionID)
	}
	return ids
}

// share shares a session, and returns the code of what refuses that.
func (c *client) share(t *testing.T, id acp.SessionID, user, role string) (*ShareAnswer, int) {
	t.Helper()
	res, err := ShareMethod.Call(t.Context(), c.conn.Conn(), &ShareRequest{SessionID: id, User: user, Role: role})
	if err != nil {
		return nil, code(err)
	}
	return res, 0
}

// TestStranger: every method that names a session answers another user as if there were no such session.
func TestStranger(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		byUser(r)
		ann := r.as("ann", 2)
		s := ann.new(t)
		say(t, s, "secret")
		for _, user := range []string{"bob", "ann2", ""} {
			stranger := r.as(user, version)
			if got := stranger.listed(t); len(got) > 0 {
				t.Errorf("%q finds %v", user, got)
			}
			for _, method := range []string{
				"session/load", "session/resume", "session/fork", "session/delete", "session/close", "session/prompt", "session/cancel",
				"session/set_mode", "session/set_config_option", "session/set_title", "session/archive", "session/unarchive", "session/status",
				"session/request_permission", ShareMethod.Name, LendMethod.Name, HistoryMethod.Name, FilesMethod.Name, ExportMethod.Name,
			} {
				answer := func(id acp.SessionID) string {
					params := map[string]any{
						"sessionId": id, "cwd": "/project", "mcpServers": []any{}, "prompt": []any{map[string]any{"type": "text", "text": "x"}},
						"modeId": "m", "configId": "c", "value": "v", "title": "t", "user": user, "role": "owner",
					}
					var res json.RawMessage
					err := stranger.conn.Conn().Call(t.Context(), method, params, &res)
					if err == nil && method != "session/close" { // which is about the client's own list
						t.Errorf("%s of %s answers %s", method, id, res)
					}
					e, _ := errors.AsType[*jsonrpc.Error](err)
					if e == nil {
						return ""
					}
					return e.Message
				}
				if theirs, none := answer(s.ID()), answer("s_000000000000000000000000"); theirs != none {
					t.Errorf("version %d, %s: %q says that there is a session, since %q does not", version, method, theirs, none)
				}
			}
			if got := stranger.seen.take(); len(got) > 0 {
				t.Errorf("%q has seen %q", user, got)
			}
		}
		say(t, s, "still there")
		if got := ann.seen.take(); slices.Contains(got, "user: x") {
			t.Errorf("%q", got)
		}
	}
}

// TestShare: with whom a session is shared may do what the role says, and nothing any more when it ends.
func TestShare(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		goOn := make(chan struct{})
		r := newRig(t, talking(goOn))
		r.max = agent
		byUser(r)
		var log []string
		r.g.cfg.Audit.Shared = func(by, _, user, role string) { log = append(log, by+" "+user+" "+role) }
		asked := func(who chan<- string, name string) func(*acp.Client) {
			return func(c *acp.Client) {
				c.RequestPermission = func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
					who <- name
					return acp.SelectPermission(req.Options[0].OptionID), nil
				}
			}
		}
		who := make(chan string, 10)
		undecided := func(c *acp.Client) {
			c.RequestPermission = func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
				<-ctx.Done()
				return acp.CancelPermission(), nil
			}
		}
		ann := r.as("ann", version, undecided)
		s := ann.new(t)
		for user, role := range map[string]string{"vi": RoleViewer, "pro": RolePrompter, "ap": RoleApprover, "own": RoleOwner} {
			if _, code := ann.share(t, s.ID(), user, role); code != 0 {
				t.Fatal(code)
			}
		}
		vi, pro, ap, own := r.as("vi", version, asked(who, "vi")), r.as("pro", version, asked(who, "pro")), r.as("ap", version, asked(who, "ap")), r.as("own", version, undecided)
		if got := vi.listed(t); !cmp.Equal(got, []acp.SessionID{s.ID()}) {
			t.Errorf("found %v", got)
		}
		viewed, prompted, approved, owned := vi.load(t, s.ID()), pro.load(t, s.ID()), ap.load(t, s.ID()), own.load(t, s.ID())
		if _, err := viewed.Prompt(t.Context(), acp.Text("x")).Wait(); reason(err) != "role" {
			t.Errorf("a viewer's prompt: %v", err)
		}
		say(t, prompted, "ask")
		if got := <-who; got != "ap" || len(who) > 0 {
			t.Errorf("%s was asked", got)
		}
		vi.seen.until(t, "agent: allow_oncetrue")

		// Only its author and owners cancel a prompt.
		reply := s.Prompt(t.Context(), acp.Text("wait"))
		vi.seen.until(t, "agent: waiting")
		for _, cannot := range []*acp.ClientSession{viewed, prompted, approved} {
			if err := cannot.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, cannot := range []*client{vi, pro, ap} { // that was handled when this is answered
			cannot.listed(t)
		}
		select {
		case <-reply.Done():
			t.Error("it was cancelled")
		default:
		}
		if err := owned.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopCancelled {
			t.Error(res, err)
		}
		for _, name := range []string{"vi", "pro", "ap"} {
			c := r.as(name, version) // one that deletes a session closes it first
			if err := c.conn.Delete(t.Context(), s.ID()); reason(err) != "role" {
				t.Errorf("%s deletes: %v", name, err)
			}
			if _, code := c.share(t, s.ID(), name, RoleOwner); code == 0 {
				t.Errorf("%s makes itself an owner", name)
			}
		}
		for name, c := range map[string]*client{"pro": pro, "ap": ap, "own": own} {
			if _, err := LendMethod.Call(t.Context(), c.conn.Conn(), &LendRequest{SessionID: s.ID()}); reason(err) != "role" {
				t.Errorf("%s lends files: %v", name, err)
			}
		}
		if res, code := own.share(t, s.ID(), "", ""); code != 0 || res.Owner != "ann" || len(res.Shares) != 4 {
			t.Errorf("%+v, %d", res, code)
		}
		for _, bad := range [][2]string{{"ann", RoleViewer}, {"bob", "king"}, {"bob", ""}} {
			if _, code := ann.share(t, s.ID(), bad[0], bad[1]); code != jsonrpc.CodeInvalidParams {
				t.Errorf("%v: %d", bad, code)
			}
		}

		// What ends, ends at once.
		if _, code := own.share(t, s.ID(), "pro", RoleNone); code != 0 {
			t.Error(code)
		}
		if _, err := prompted.Prompt(t.Context(), acp.Text("x")).Wait(); err == nil {
			t.Error("a prompt of somebody with whom it is not shared any more")
		}
		say(t, s, "after")
		vi.seen.until(t, "agent: after")
		if got := pro.seen.take(); slices.Contains(got, "agent: after") || len(pro.listed(t)) > 0 {
			t.Errorf("%q", got)
		}
		if _, err := r.as("pro", version).conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project"}); err == nil {
			t.Error("loaded")
		}
		if _, err := pro.conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project"}); err == nil && slices.Contains(pro.seen.take(), "agent: after") {
			t.Error("loaded by a client that has it open")
		}
		if log[len(log)-1] != "own pro none" || len(log) != 5 {
			t.Errorf("%q", log)
		}
	})
}

// TestShareNodes: a role ends also where a client is connected to another node than the owner's.
func TestShareNodes(t *testing.T) {
	dir := t.TempDir()
	a, b := newMember(t, dir, "a", talking(nil)), newMember(t, dir, "b", talking(nil))
	byUser(a.rig)
	byUser(b.rig)
	ann := a.as("ann", 2)
	s := ann.new(t)
	if _, code := ann.share(t, s.ID(), "bob", RolePrompter); code != 0 {
		t.Fatal(code)
	}
	bob := b.as("bob", 2)
	theirs := bob.load(t, s.ID())
	say(t, theirs, "one")
	if _, code := ann.share(t, s.ID(), "bob", RoleViewer); code != 0 {
		t.Fatal(code)
	}
	if _, err := theirs.Prompt(t.Context(), acp.Text("x")).Wait(); reason(err) != "role" {
		t.Error(err)
	}
	if _, code := ann.share(t, s.ID(), "bob", RoleNone); code != 0 {
		t.Fatal(code)
	}
	bob.seen.until(t, "notice: This session is not shared with you any more.")
}
