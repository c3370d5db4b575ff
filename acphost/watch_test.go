//go:build unix

package acphost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// watched makes terminals whose events arrive in a channel.
func watched(t *testing.T) (*Terminals, <-chan TerminalEvent) {
	h := local(t)
	events := make(chan TerminalEvent, 100)
	h.Watch = func(e TerminalEvent) { events <- e }
	return h, events
}

func TestTerminalWatch(t *testing.T) {
	h, events := watched(t)
	dir := realDir(t)
	req := script("echo one; echo two >&2; exit 3")
	req.Cwd = dir
	id := create(t, h, req)
	first := <-events
	want := TerminalEvent{SessionID: session, TerminalID: id, Started: &TerminalStart{Command: req.Command, Args: req.Args, Cwd: dir}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	var out strings.Builder
	var last TerminalEvent
	for last = range events {
		if last.Exited != nil {
			break
		}
		if last.SessionID != session || last.TerminalID != id || last.Started != nil || len(last.Output) == 0 || last.Dropped != 0 {
			t.Fatalf("%+v", last)
		}
		out.Write(last.Output)
	}
	if out.String() != "one\ntwo\n" {
		t.Errorf("%q", &out)
	}
	want = TerminalEvent{SessionID: session, TerminalID: id, Exited: &acpv1.TerminalExitStatus{ExitCode: new(uint32(3))}}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
}

// TestTerminalWatchBackground: what a command leaves behind is heard of later.
func TestTerminalWatchBackground(t *testing.T) {
	h, events := watched(t)
	flag := realDir(t) + "/flag"
	id := create(t, h, script("(until [ -e "+flag+" ]; do sleep 0.01; done; echo later; sleep 1000) & exit 0"))
	for e := range events {
		if e.Exited != nil {
			break
		}
	}
	put(t, flag, "")
	if e := <-events; string(e.Output) != "later\n" {
		t.Errorf("%+v", e)
	}
	if _, err := h.ReleaseTerminal(t.Context(), &acpv1.ReleaseTerminalRequest{SessionID: session, TerminalID: id}); err != nil {
		t.Fatal(err)
	}
}

// TestTerminalWatchSlow holds that a slow hook stops nothing but itself.
func TestTerminalWatchSlow(t *testing.T) {
	h := local(t)
	release := make(chan struct{})
	got := make(chan TerminalEvent, 10)
	h.Watch = func(e TerminalEvent) {
		<-release
		got <- e
	}
	const size = 3 * maxWatchPending
	id := create(t, h, script(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; printf end", size-3)))
	wait(t, h, id)
	close(release)
	<-got // that it has started
	e := <-got
	if len(e.Output) != maxWatchPending || e.Dropped != size-maxWatchPending || !strings.HasSuffix(string(e.Output), "xend") {
		t.Errorf("%d bytes after %d", len(e.Output), e.Dropped)
	}
	if e := <-got; e.Exited == nil {
		t.Errorf("%+v", e)
	}
}

func TestTerminalPermit(t *testing.T) {
	h, events := watched(t)
	req := script("true")
	req.SessionID = session
	h.Permit = func(_ context.Context, r *acpv1.CreateTerminalRequest) error {
		if diff := cmp.Diff(&req, r); diff != "" {
			t.Error(diff)
		}
		r.Args[1] = "false" // which changes nothing
		return nil
	}
	if got := wait(t, h, create(t, h, req)); got.ExitCode == nil || *got.ExitCode != 0 {
		t.Errorf("%+v", got)
	}
	h.ReleaseSession(session)
	for e := range events {
		if e.Exited != nil {
			break
		}
	}
	broken := errors.New("the screen is gone")
	ctx, cancel := context.WithCancel(t.Context())
	for _, tt := range []struct {
		permit func() error
		want   error
	}{
		{func() error { return fmt.Errorf("the user: %w", fs.ErrPermission) }, jsonrpc.ErrInternal},
		{func() error { return invalid("command", "no") }, jsonrpc.ErrInvalidParams},
		{func() error { return broken }, broken},
		{func() error { cancel(); return nil }, context.Canceled},
	} {
		h.Permit = func(context.Context, *acpv1.CreateTerminalRequest) error { return tt.permit() }
		if _, err := h.CreateTerminal(ctx, &req); !errors.Is(err, tt.want) {
			t.Errorf("%v, want %v", err, tt.want)
		}
	}
	if h.len() != 0 || len(events) != 0 {
		t.Errorf("%d terminals, %d events", h.len(), len(events))
	}
	cancel()
}

// latePTY ends the request while it starts.
type latePTY struct {
	pipes
	cancel func()
}

func (p latePTY) Start(ctx context.Context, c PTYCommand) (PTYProcess, error) {
	defer p.cancel()
	return p.pipes.Start(ctx, c)
}

// TestTerminalCancelled holds that nothing runs of which the agent was not told.
func TestTerminalCancelled(t *testing.T) {
	h := local(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.PTY = latePTY{cancel: cancel}
	req, processes := marked(t, script("sleep 1000"))
	req.SessionID = session
	if _, err := h.CreateTerminal(ctx, &req); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if h.len() != 0 {
		t.Errorf("%d terminals", h.len())
	}
	processes(0)
}
