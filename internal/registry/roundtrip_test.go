package registry_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goacp/acp/internal/overlay"
	"github.com/goacp/acp/internal/registry"
	"github.com/goacp/acp/internal/sample"
)

var perTypeFlag = flag.Int("values", perType, "random values of each type; CI uses 2000")

// profiles are the four schemas.
var profiles = []struct{ file, version string }{
	{"v1", "v1"}, {"v1.unstable", "v1"}, {"v2", "v2"}, {"v2.unstable", "v2"},
}

func load(t testing.TB, file string) *sample.Schema {
	t.Helper()
	set, err := overlay.Read(filepath.Join("..", "..", "schema"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Schema(file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.Load(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// patched lists the members in which the types tell null, empty and absent
// apart, as the tables of internal/gen have it.
var patched = map[string]map[string]bool{
	"v1": set("ToolCallUpdate.kind", "ToolCallUpdate.status", "ToolCallUpdate.title", "ToolCallUpdate.content", "ToolCallUpdate.locations",
		"SessionInfoUpdate.title", "SessionInfoUpdate.updatedAt", "CompactionUpdate.summary", "CompactionUpdate.error", "CompactionUpdate._meta",
		"SubagentUpdate.title", "SubagentUpdate.description", "SubagentUpdate.capabilities", "SubagentUpdate.state", "SubagentUpdate.cwd",
		"SubagentUpdate.additionalDirectories", "SubagentUpdate._meta", "SessionMessage.senderSessionId", "SessionMessage.recipientSessionId",
		"SessionMessage.senderMessageId", "SessionMessage.recipientMessageId", "SessionMessage.content", "SessionMessage._meta",
		"CursorUpdate.capabilities", "CursorUpdate._meta"),
	"v2": set("ToolCallUpdate.name", "ToolCallUpdate.title", "ToolCallUpdate.kind", "ToolCallUpdate.status", "ToolCallUpdate.content",
		"ToolCallUpdate.locations", "ToolCallUpdate.capabilities", "ToolCallUpdate._meta", "UserMessage.content", "UserMessage._meta",
		"AgentMessage.content", "AgentMessage._meta", "AgentThought.content", "AgentThought._meta", "TerminalUpdate.command",
		"TerminalUpdate.cwd", "TerminalUpdate.output", "TerminalUpdate.exitStatus", "TerminalUpdate.size", "TerminalUpdate.capabilities",
		"TerminalUpdate._meta", "SessionInfoUpdate.title", "SessionInfoUpdate.updatedAt", "SessionInfoUpdate._meta", "UsageUpdate.cost",
		"CompactionUpdate.summary", "CompactionUpdate.error", "CompactionUpdate._meta", "SubagentUpdate.title", "SubagentUpdate.description",
		"SubagentUpdate.capabilities", "SubagentUpdate.state", "SubagentUpdate.cwd", "SubagentUpdate.additionalDirectories",
		"SubagentUpdate._meta", "SessionMessage.senderSessionId", "SessionMessage.recipientSessionId", "SessionMessage.senderMessageId",
		"SessionMessage.recipientMessageId", "SessionMessage.content", "SessionMessage._meta",
		"CursorUpdate.capabilities", "CursorUpdate._meta"),
}

// present lists other members whose empty value is sent.
var present = map[string]map[string]bool{
	"v1": set("Diff.oldText", "StringPropertySchema.default"),
	"v2": set("StringPropertySchema.default", "ListSessionsRequest.cursor", "ListSessionsResponse.nextCursor",
		"RunningStateUpdate.background", "IdleStateUpdate.background", "RequiresActionStateUpdate.background", "UnknownStateUpdate.background"),
}

// parts are definitions that never stand alone on the wire: their members lie in
// an object around them, which keeps what is unknown.
var parts = set("ElicitationFormMode", "ElicitationUrlMode", "ElicitationSessionScope", "ElicitationRequestScope",
	"ElicitationAcceptAction", "SessionConfigSelect", "SessionConfigBoolean", "DiffPathChange", "DiffPathPairChange")

func set(keys ...string) map[string]bool {
	m := map[string]bool{}
	for _, k := range keys {
		m[k] = true
	}
	return m
}

// TestRoundTrip: no value is lost. Every valid value of every definition of
// every schema means the same after it was decoded and encoded, unknown members
// and variants and raw data included, these by their spelling.
func TestRoundTrip(t *testing.T) {
	perType := *perTypeFlag
	if testing.Short() {
		perType = min(perType, 50)
	}
	for _, p := range profiles {
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			s := load(t, p.file)
			form := sample.Options{
				DropTags: true, // a variant's type writes its discriminator, which the bare definition does not have
				Patch:    patched[p.version],
				Present:  present[p.version],
			}
			types, values := 0, 0
			for _, name := range s.Names() {
				v, ok := registry.New(p.version, name)
				if !ok {
					continue // a message envelope
				}
				types++
				rng := rand.New(rand.NewPCG(1, uint64(len(name))))
				for range perType {
					values++
					in := s.Valid(rng, name)
					if !roundTrip(t, form, s, name, v, in) {
						break
					}
				}
			}
			t.Logf("%d types, %d values", types, values)
			if types < 160 {
				t.Errorf("only %d types were found", types)
			}
		})
	}
}

// emptyStop finds stop reasons that are the empty string, which the types take
// for none: an idle state may come without a reason.
var emptyStop = regexp.MustCompile(`"stopReason"\s*:\s*""`)

func roundTrip(t *testing.T, form sample.Options, s *sample.Schema, name string, v registry.Value, in []byte) bool {
	t.Helper()
	if err := v.UnmarshalJSON(in); err != nil {
		t.Errorf("%s: %v\n\t%s", name, err, in)
		return false
	}
	out, err := v.MarshalJSON()
	if err != nil {
		t.Errorf("%s: encode: %v\n\t%s", name, err, in)
		return false
	}
	if bytes.ContainsAny(out, "\n\r") || !json.Valid(out) {
		t.Errorf("%s: encoded as no single line of JSON\n\t%s\n\t%s", name, in, out)
		return false
	}
	if emptyStop.Match(in) {
		return true
	}
	form.Strip = parts[name]
	want, err := form.Canonical(s, name, in)
	if err != nil {
		t.Errorf("%s: %v\n\t%s", name, err, in)
		return false
	}
	got, err := form.Canonical(s, name, out)
	if err != nil {
		t.Errorf("%s: after a round trip: %v\n\t%s\n\t%s", name, err, in, out)
		return false
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: lost something\n in  %s\n out %s\n want %s\n got  %s", name, in, out, want, got)
		return false
	}
	return true
}
