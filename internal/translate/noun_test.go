package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/overlay"
	"github.com/goacp/acp/internal/sample"
)

var perNoun = flag.Int("values", 300, "random values of each noun")

func load(t testing.TB, file string) *sample.Schema {
	t.Helper()
	set, err := overlay.Read(filepath.Join("..", "..", "schema"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Schema(file + ".unstable.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.Load(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A noun is a type of both versions. there and back convert it; keep1 and keep2
// say whether the other version can express all of a value (nil: always).
type noun struct {
	v1, v2 string // names of the definitions; empty: not tried in this direction
	run    func(t *testing.T, v1, v2 *sample.Schema)

	crosses1, crosses2 func(t *testing.T, in []byte) bool
}

func makeNoun[A, B any](v1, v2 string, a codec[A], b codec[B], there func(A) (B, error), back func(B) (A, error), run func(*testing.T, *sample.Schema, *sample.Schema)) noun {
	return noun{v1: v1, v2: v2, run: run,
		crosses1: func(t *testing.T, in []byte) bool { return crosses(t, in, a, b, there) },
		crosses2: func(t *testing.T, in []byte) bool { return crosses(t, in, b, a, back) },
	}
}

type codec[T any] struct {
	read  func([]byte) (T, error)
	write func(T) ([]byte, error)
}

// object_ is the codec of a struct.
func object_[T any, P interface {
	*T
	AppendJSON([]byte) ([]byte, error)
	UnmarshalJSON([]byte) error
}]() codec[T] {
	return codec[T]{
		read:  func(data []byte) (v T, err error) { return v, P(&v).UnmarshalJSON(data) },
		write: func(v T) ([]byte, error) { return P(&v).AppendJSON(nil) },
	}
}

func union[T interface{ AppendJSON([]byte) ([]byte, error) }](read func([]byte) (T, error)) codec[T] {
	return codec[T]{read: read, write: func(v T) ([]byte, error) { return v.AppendJSON(nil) }}
}

// always wraps a conversion that cannot fail.
func always[A, B any](f func(A) B) func(A) (B, error) {
	return func(v A) (B, error) { return f(v), nil }
}

var errLeftOut = errors.New("left out")

// maybe wraps a conversion that tells by a bool whether it is possible.
func maybe[A, B any](f func(A) (B, bool)) func(A) (B, error) {
	return func(v A) (B, error) {
		w, ok := f(v)
		if !ok {
			return w, errLeftOut
		}
		return w, nil
	}
}

// inList makes a conversion of a list one of its only item.
func inList[A, B any](f func([]A) []B) func(A) (B, error) {
	return func(v A) (w B, err error) {
		if list := f([]A{v}); len(list) == 1 {
			return list[0], nil
		}
		return w, errLeftOut
	}
}

func inListErr[A, B any](f func([]A) ([]B, error)) func(A) (B, error) {
	return func(v A) (w B, err error) {
		list, err := f([]A{v})
		if err != nil {
			return w, err
		}
		return list[0], nil
	}
}

func both[A, B any](v1, v2 string, a codec[A], b codec[B], there func(A) (B, error), back func(B) (A, error), keep1 func(A) bool, keep2 func(B) bool) noun {
	return makeNoun(v1, v2, a, b, there, back, func(t *testing.T, s1, s2 *sample.Schema) {
		if v1 != "" {
			t.Run("from v1", func(t *testing.T) { trip(t, s1, v1, a, b, there, back, keep1, true) })
		}
		if v2 != "" {
			t.Run("from v2", func(t *testing.T) { trip(t, s2, v2, b, a, back, there, keep2, true) })
		}
	})
}

// rough is both for a noun of which nearly always something is lost, on the way
// from version 1 and, if keep2 is nil, on the way from version 2; tables hold
// what is not.
func rough[A, B any](v1, v2 string, a codec[A], b codec[B], there func(A) (B, error), back func(B) (A, error), keep2 func(B) bool) noun {
	return makeNoun(v1, v2, a, b, there, back, func(t *testing.T, s1, s2 *sample.Schema) {
		t.Run("from v1", func(t *testing.T) {
			trip(t, s1, v1, a, b, there, back, func(A) bool { return false }, false)
		})
		t.Run("from v2", func(t *testing.T) {
			if keep2 == nil {
				trip(t, s2, v2, b, a, back, there, func(B) bool { return false }, false)
				return
			}
			trip(t, s2, v2, b, a, back, there, keep2, true)
		})
	})
}

// trip converts random values to the other version and back. What comes out on
// the other side is encoded and decoded there, so that it must be valid; what
// comes back must be the same where keep says so.
func trip[A, B any](t *testing.T, s *sample.Schema, name string, a codec[A], b codec[B], there func(A) (B, error), back func(B) (A, error), keep func(A) bool, compare bool) {
	rng := rand.New(rand.NewPCG(11, uint64(len(name))))
	same, converted := 0, 0
	for range *perNoun {
		in := s.Valid(rng, name)
		v, err := a.read(in)
		if err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		want, err := a.write(v)
		if err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		kept := keep == nil || keep(v)
		w, err := there(v)
		if err != nil {
			if kept {
				t.Fatalf("%v\n%s", err, in)
			}
			continue
		}
		other, err := b.write(w)
		if err != nil {
			t.Fatalf("not encoded on the other side: %v\n%s", err, in)
		}
		if w, err = b.read(other); err != nil {
			t.Fatalf("not decoded on the other side: %v\n%s\n%s", err, in, other)
		}
		converted++
		if after, _ := a.write(v); !bytes.Equal(after, want) {
			t.Fatalf("changed its argument\n%s\n%s", want, after)
		}
		v, err = back(w)
		if err != nil {
			if kept {
				t.Fatalf("not back: %v\n%s\n%s", err, in, other)
			}
			continue
		}
		got, err := a.write(v)
		if err != nil {
			t.Fatalf("not encoded when back: %v\n%s\n%s", err, in, other)
		}
		if !kept {
			continue
		}
		same++
		if !bytes.Equal(got, want) {
			t.Fatalf("lost something\n here  %s\n there %s\n back  %s", want, other, got)
		}
	}
	if converted < *perNoun/2 || compare && same < *perNoun/20 {
		t.Errorf("of %d values %d were converted and %d compared", *perNoun, converted, same)
	}
}

func priorityFits(p *float64) bool { return p == nil || *p >= 0 && *p <= 1 }

func contentFits(b acpv1.ContentBlock) bool {
	var a *acpv1.Annotations
	switch b := b.(type) {
	case *acpv1.TextContent:
		a = b.Annotations
	case *acpv1.ImageContent:
		a = b.Annotations
	case *acpv1.AudioContent:
		a = b.Annotations
	case *acpv1.EmbeddedResource:
		a = b.Annotations
	case *acpv1.ResourceLink:
		a = b.Annotations
		if b.Size != nil && *b.Size < 0 {
			return false
		}
	}
	return a == nil || priorityFits(a.Priority)
}

func contentKept(b acpv2.ContentBlock) bool {
	if _, skill := b.(*acpv2.SkillReference); skill {
		return false
	}
	l, ok := b.(*acpv2.ResourceLink)
	return !ok || l.Icons == nil && (l.Size == nil || *l.Size < 1<<63)
}

func all[T any](keep func(T) bool) func([]T) bool {
	return func(list []T) bool {
		for _, v := range list {
			if !keep(v) {
				return false
			}
		}
		return true
	}
}

func planFits(u acpv1.PlanUpdate) bool {
	_, unknown := u.Plan.(*acpv1.UnknownPlanUpdateContent)
	return !unknown
}

func planKept(u acpv2.PlanUpdate) bool {
	p, ok := u.Plan.(*acpv2.PlanItems)
	return !ok || all(func(e acpv2.PlanEntry) bool {
		return acpv1.PlanEntryStatus(e.Status).Known() && acpv1.PlanEntryPriority(e.Priority).Known()
	})(p.Entries)
}

func optionFits(o acpv1.SessionConfigOption) bool {
	s, ok := o.Kind.(*acpv1.SessionConfigSelect)
	if !ok {
		return true
	}
	switch o := s.Options.(type) {
	case acpv1.SessionConfigSelectOptionList:
		return len(o) > 0
	case acpv1.SessionConfigSelectGroupList:
		// A reader of version 2 resets a group without options to the empty list,
		// which is the same.
		return len(o) > 0
	}
	return false
}

func fieldFits(p acpv1.ElicitationProperty) bool {
	_, err := fieldFromV1(p.Schema)
	return err == nil
}

func formFits(r acpv1.CreateElicitationRequest) bool {
	m, ok := r.Mode.(*acpv1.ElicitationFormMode)
	return !ok || all(fieldFits)(m.RequestedSchema.Properties)
}

// oneScope reports a request that belongs to one thing only, as version 2 wants
// it.
func oneScope(r acpv1.CreateElicitationRequest) bool {
	raw, err := r.MarshalJSON()
	if err != nil {
		return false
	}
	var v struct{ SessionID, RequestID json.RawMessage }
	return json.Unmarshal(raw, &v) == nil && (v.SessionID == nil || v.RequestID == nil)
}

func stateKept(s acpv2.StateUpdate) bool {
	switch s := s.(type) {
	case *acpv2.RunningStateUpdate:
		return s.Background == nil
	case *acpv2.RequiresActionStateUpdate:
		return s.Background == nil
	case *acpv2.StateUnknownUpdate:
		return s.Background == nil
	case *acpv2.IdleStateUpdate:
		return s.Background == nil
	}
	return true
}

func suggestionsFit(u acpv1.PromptSuggestionsUpdate) bool {
	return all(func(s acpv1.PromptSuggestion) bool { return all(contentFits)(s.Prompt) })(u.Suggestions)
}

func suggestionsKept(u acpv2.PromptSuggestionsUpdate) bool {
	return all(func(s acpv2.PromptSuggestion) bool {
		return all(func(b acpv2.ContentBlock) bool { return closed(b) == b && contentKept(b) })(s.Prompt)
	})(u.Suggestions)
}

func summaryFits(u acpv1.CompactionUpdate) bool { return all(contentFits)(u.Summary.Or(nil)) }

func summaryKept(u acpv2.CompactionUpdate) bool { return all(contentKept)(u.Summary.Or(nil)) }

func messageFits(m acpv1.SessionMessage) bool { return all(contentFits)(m.Content.Or(nil)) }

func messageKept(m acpv2.SessionMessage) bool { return all(contentKept)(m.Content.Or(nil)) }

func chunkFits(c acpv1.SessionMessageChunk) bool { return contentFits(c.Content) }

func chunkKept(c acpv2.SessionMessageChunk) bool { return contentKept(c.Content) }

func locationFits(l acpv1.ToolCallLocation) bool { return l.Line == nil || *l.Line > 0 }

// serverKept is false where version 1 writes an empty list for an absent one.
func serverKept(s acpv2.MCPServer) bool {
	switch s := s.(type) {
	case *acpv2.MCPServerHTTP:
		return s.Headers != nil
	case *acpv2.MCPServerStdio:
		return s.Args != nil && s.Env != nil
	}
	return true
}

func answerKept(r acpv2.CreateElicitationResponse) bool {
	a, ok := r.Action.(*acpv2.ElicitationAcceptAction)
	return !ok || len(answers(a.Content)) == len(a.Content)
}

func clientKept(c acpv2.ClientCapabilities) bool {
	if s := c.Session; s != nil && (s.PromptSuggestions == nil || s.Commands != nil || hasMembers(s.Meta, s.Unknown)) {
		return false
	}
	a := c.Auth
	return a == nil || (a.Terminal != nil || hasMembers(a.Meta, a.Unknown)) && (a.Terminal == nil || !hasMembers(a.Terminal.Meta, a.Terminal.Unknown))
}

func nouns() []noun {
	return []noun{
		both("ContentBlock", "ContentBlock", union(acpv1.UnmarshalContentBlock), union(acpv2.UnmarshalContentBlock),
			always(ContentFromV1), always(ContentToV1), contentFits, contentKept),
		both("AvailableCommand", "AvailableCommand", object_[acpv1.AvailableCommand](), union(acpv2.UnmarshalAvailableCommand),
			inList(CommandsFromV1), inList(CommandsToV1), nil, func(c acpv2.AvailableCommand) bool {
				v, ok := c.(*acpv2.Command)
				if !ok {
					return false
				}
				_, unknown := v.Input.(*acpv2.UnknownAvailableCommandInput)
				return !unknown
			}),
		both("SessionConfigOption", "SessionConfigOption", object_[acpv1.SessionConfigOption](), object_[acpv2.SessionConfigOption](),
			inList(OptionsFromV1), inList(OptionsToV1), optionFits, nil),
		both("AuthMethod", "AuthMethod", union(acpv1.UnmarshalAuthMethod), union(acpv2.UnmarshalAuthMethod),
			inList(AuthMethodsFromV1), inList(AuthMethodsToV1), func(m acpv1.AuthMethod) bool {
				_, unknown := m.(*acpv1.UnknownAuthMethod)
				return !unknown // the members are in another order then
			}, func(m acpv2.AuthMethod) bool {
				v, ok := m.(*acpv2.AuthMethodTerminal)
				return ok && len(v.Env) < 2 && all(func(e acpv2.EnvVariable) bool { return !hasMembers(e.Meta, e.Unknown) })(v.Env)
			}),
		both("McpServer", "McpServer", union(acpv1.UnmarshalMCPServer), union(acpv2.UnmarshalMCPServer),
			inListErr(MCPServersFromV1), inListErr(MCPServersToV1), nil, serverKept),
		both("PermissionOption", "PermissionOption", object_[acpv1.PermissionOption](), object_[acpv2.PermissionOption](),
			inList(PermissionOptionsFromV1), inList(PermissionOptionsToV1), nil, func(o acpv2.PermissionOption) bool {
				return acpv1.PermissionOptionKind(o.Kind).Known()
			}),
		both("RequestPermissionOutcome", "RequestPermissionOutcome", union(acpv1.UnmarshalRequestPermissionOutcome), union(acpv2.UnmarshalRequestPermissionOutcome),
			always(PermissionOutcomeFromV1), always(PermissionOutcomeToV1), nil, nil),
		both("SessionInfo", "SessionInfo", object_[acpv1.SessionInfo](), object_[acpv2.SessionInfo](),
			always(SessionInfoFromV1), always(SessionInfoToV1), nil, nil),
		both("ListSessionsRequest", "ListSessionsRequest", object_[acpv1.ListSessionsRequest](), object_[acpv2.ListSessionsRequest](),
			always(ListSessionsFromV1), always(ListSessionsToV1), nil, func(r acpv2.ListSessionsRequest) bool { return r.Cursor == nil || *r.Cursor != "" }),
		both("ListSessionsResponse", "ListSessionsResponse", object_[acpv1.ListSessionsResponse](), object_[acpv2.ListSessionsResponse](),
			always(SessionsFromV1), always(SessionsToV1), nil, func(r acpv2.ListSessionsResponse) bool { return r.NextCursor == nil || *r.NextCursor != "" }),
		both("SessionStatusResponse", "SessionStatusResponse", object_[acpv1.SessionStatusResponse](), object_[acpv2.SessionStatusResponse](),
			always(SessionStatusFromV1), always(SessionStatusToV1), nil, func(r acpv2.SessionStatusResponse) bool { return r.State == nil }),
		both("SystemPrompt", "SystemPrompt", object_[acpv1.SystemPrompt](), object_[acpv2.SystemPrompt](),
			always(func(p acpv1.SystemPrompt) acpv2.SystemPrompt { return *SystemPromptFromV1(&p) }),
			always(func(p acpv2.SystemPrompt) acpv1.SystemPrompt { return *SystemPromptToV1(&p) }),
			func(p acpv1.SystemPrompt) bool { return all(contentFits)(p.Content) },
			func(p acpv2.SystemPrompt) bool { return all(contentKept)(p.Content) }),
		both("PlanUpdate", "PlanUpdate", object_[acpv1.PlanUpdate](), object_[acpv2.PlanUpdate](),
			maybe(PlanUpdateFromV1), maybe(PlanUpdateToV1), planFits, planKept),
		both("Plan", "", object_[acpv1.Plan](), object_[acpv2.PlanUpdate](), always(PlanFromV1), maybe(PlanToV1), nil, nil),
		both("Usage", "Usage", object_[acpv1.Usage](), object_[acpv2.Usage](),
			always(func(u acpv1.Usage) acpv2.Usage { return *UsageFromV1(&u) }), always(func(u acpv2.Usage) acpv1.Usage { return *UsageToV1(&u) }), nil, nil),
		both("Error", "Error", object_[acpv1.Error](), object_[acpv2.Error](),
			always(func(e acpv1.Error) acpv2.Error { return *ErrorFromV1(&e) }), always(func(e acpv2.Error) acpv1.Error { return *ErrorToV1(&e) }), nil, nil),
		both("StateUpdate", "", union(acpv1.UnmarshalStateUpdate), union(acpv2.UnmarshalStateUpdate), always(StateFromV1), always(StateToV1),
			func(s acpv1.StateUpdate) bool { _, unknown := s.(*acpv1.UnknownStateUpdate); return !unknown }, nil),
		both("SubagentUpdate", "SubagentUpdate", object_[acpv1.SubagentUpdate](), object_[acpv2.SubagentUpdate](),
			always(SubagentFromV1), always(SubagentToV1), nil, func(u acpv2.SubagentUpdate) bool { return stateKept(u.State.Or(nil)) }),
		both("SessionMessage", "SessionMessage", object_[acpv1.SessionMessage](), object_[acpv2.SessionMessage](),
			always(SessionMessageFromV1), always(SessionMessageToV1), messageFits, messageKept),
		both("SessionMessageChunk", "SessionMessageChunk", object_[acpv1.SessionMessageChunk](), object_[acpv2.SessionMessageChunk](),
			always(SessionMessageChunkFromV1), always(SessionMessageChunkToV1), chunkFits, chunkKept),
		both("CompactionUpdate", "CompactionUpdate", object_[acpv1.CompactionUpdate](), object_[acpv2.CompactionUpdate](),
			always(CompactionFromV1), always(CompactionToV1), summaryFits, summaryKept),
		both("CompactionSummaryChunk", "CompactionSummaryChunk", object_[acpv1.CompactionSummaryChunk](), object_[acpv2.CompactionSummaryChunk](),
			always(CompactionChunkFromV1), always(CompactionChunkToV1),
			func(c acpv1.CompactionSummaryChunk) bool { return contentFits(c.Content) },
			func(c acpv2.CompactionSummaryChunk) bool { return contentKept(c.Content) }),
		both("PromptSuggestionsUpdate", "PromptSuggestionsUpdate", object_[acpv1.PromptSuggestionsUpdate](), object_[acpv2.PromptSuggestionsUpdate](),
			always(SuggestionsFromV1), always(SuggestionsToV1), suggestionsFit, suggestionsKept),
		both("CursorUpdate", "CursorUpdate", object_[acpv1.CursorUpdate](), object_[acpv2.CursorUpdate](),
			always(CursorFromV1), always(CursorToV1), nil, nil),
		both("SessionOptionsRequest", "SessionOptionsRequest", object_[acpv1.SessionOptionsRequest](), object_[acpv2.SessionOptionsRequest](),
			always(OptionsRequestFromV1), always(OptionsRequestToV1), nil, nil),
		both("InitialSessionConfigOption", "InitialSessionConfigOption", object_[acpv1.InitialSessionConfigOption](), object_[acpv2.InitialSessionConfigOption](),
			inList(InitialOptionsFromV1), inList(InitialOptionsToV1), nil, func(o acpv2.InitialSessionConfigOption) bool {
				_, unknown := o.Value.(*acpv2.UnknownSessionConfigOptionValue)
				return !unknown
			}),
		both("Notice", "Notice", object_[acpv1.Notice](), object_[acpv2.Notice](), always(NoticeFromV1), always(NoticeToV1), nil, nil),
		both("SessionInfoUpdate", "SessionInfoUpdate", object_[acpv1.SessionInfoUpdate](), object_[acpv2.SessionInfoUpdate](),
			always(SessionInfoUpdateFromV1), always(SessionInfoUpdateToV1), nil, func(u acpv2.SessionInfoUpdate) bool { return string(u.Meta) != "null" }),
		both("UsageUpdate", "UsageUpdate", object_[acpv1.UsageUpdate](), object_[acpv2.UsageUpdate](),
			always(UsageUpdateFromV1), always(UsageUpdateToV1), nil, func(u acpv2.UsageUpdate) bool { return !u.Cost.IsClear() }),
		both("ListProvidersResponse", "ListProvidersResponse", object_[acpv1.ListProvidersResponse](), object_[acpv2.ListProvidersResponse](),
			always(ProvidersFromV1), always(ProvidersToV1), nil, nil),
		both("SetProviderRequest", "SetProviderRequest", object_[acpv1.SetProviderRequest](), object_[acpv2.SetProviderRequest](),
			always(SetProviderFromV1), always(SetProviderToV1), nil, nil),
		both("DisableProviderRequest", "DisableProviderRequest", object_[acpv1.DisableProviderRequest](), object_[acpv2.DisableProviderRequest](),
			always(DisableProviderFromV1), always(DisableProviderToV1), nil, nil),
		both("AuthStatusResponse", "AuthStatusResponse", object_[acpv1.AuthStatusResponse](), object_[acpv2.AuthStatusResponse](),
			always(AuthStatusFromV1), always(AuthStatusToV1), nil, nil),
		both("AuthStatusUpdateNotification", "AuthStatusUpdateNotification", object_[acpv1.AuthStatusUpdateNotification](), object_[acpv2.AuthStatusUpdateNotification](),
			always(AuthStatusUpdateFromV1), always(AuthStatusUpdateToV1), nil, nil),
		both("MessageMcpRequest", "MessageMcpRequest", object_[acpv1.MessageMCPRequest](), object_[acpv2.MessageMCPRequest](),
			always(MCPRequestFromV1), always(MCPRequestToV1), nil, nil),
		both("MessageMcpResponse", "MessageMcpResponse", object_[acpv1.MessageMCPResponse](), object_[acpv2.MessageMCPResponse](),
			always(MCPResponseFromV1), always(MCPResponseToV1), nil, nil),
		both("MessageMcpNotification", "MessageMcpNotification", object_[acpv1.MessageMCPNotification](), object_[acpv2.MessageMCPNotification](),
			always(MCPNotificationFromV1), always(MCPNotificationToV1), nil, nil),
		both("Implementation", "Implementation", object_[acpv1.Implementation](), object_[acpv2.Implementation](),
			always(func(i acpv1.Implementation) acpv2.Implementation { return ImplementationFromV1(&i) }),
			always(func(i acpv2.Implementation) acpv1.Implementation { return *ImplementationToV1(i) }), nil, nil),
		both("CreateElicitationRequest", "CreateElicitationRequest", object_[acpv1.CreateElicitationRequest](), object_[acpv2.CreateElicitationRequest](),
			ElicitationFromV1, always(ElicitationToV1), func(r acpv1.CreateElicitationRequest) bool { return formFits(r) && oneScope(r) && !nullScope(r.Mode) }, nil),
		both("CreateElicitationResponse", "CreateElicitationResponse", object_[acpv1.CreateElicitationResponse](), object_[acpv2.CreateElicitationResponse](),
			always(ElicitationResponseFromV1), always(ElicitationResponseToV1), nil, answerKept),
		both("CompleteElicitationNotification", "CompleteElicitationNotification", object_[acpv1.CompleteElicitationNotification](), object_[acpv2.CompleteElicitationNotification](),
			always(ElicitationCompleteFromV1), always(ElicitationCompleteToV1), nil, nil),
		both("ToolCallLocation", "ToolCallLocation", object_[acpv1.ToolCallLocation](), object_[acpv2.ToolCallLocation](),
			inList(LocationsFromV1), inList(LocationsToV1), locationFits, nil),
		rough("AgentCapabilities", "AgentCapabilities", object_[acpv1.AgentCapabilities](), object_[acpv2.AgentCapabilities](),
			always(AgentCapabilitiesFromV1), always(AgentCapabilitiesToV1), nil),
		rough("ClientCapabilities", "ClientCapabilities", object_[acpv1.ClientCapabilities](), object_[acpv2.ClientCapabilities](),
			always(ClientCapabilitiesFromV1), always(ClientCapabilitiesToV1), clientKept),
	}
}

func TestNouns(t *testing.T) {
	v1, v2 := load(t, "v1"), load(t, "v2")
	for _, n := range nouns() {
		t.Run(n.v1, func(t *testing.T) { n.run(t, v1, v2) })
	}
}
