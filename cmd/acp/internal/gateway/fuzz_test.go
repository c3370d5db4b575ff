package gateway

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/internal/translate"
)

// FuzzMeta: whatever clients say in _meta is taken, or refused without a panic.
func FuzzMeta(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"github.com/goacp/acp":{"cursor":3}}`, `{"github.com/goacp/acp":{"at":0,"agent":"x","operationId":"o"}}`,
		`{"github.com/goacp/acp":{"tail":300,"cursor":3}}`, `{"github.com/goacp/acp":{"tail":-1}}`,
		`{"github.com/goacp/acp":{"cursor":-1}}`, `{"github.com/goacp/acp":[]}`, `{"github.com/goacp/acp":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := metaOf(data)
		if err == nil && m.hasCursor && !json.Valid(data) {
			t.Error("a cursor from what is not JSON")
		}
	})
}

// FuzzForked: a record that can be copied into a fork can be copied from there, too, and stays the same.
func FuzzForked(f *testing.F) {
	for _, seed := range []struct {
		kind engine.Kind
		data string
	}{
		{kindPrompt, `{"id":"p","by":"ann","op":"o","content":{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}}`},
		{kindChild, `{"update":{"sessionUpdate":"subagent_update","sessionId":"a.sub"},"child":"a.other","e":3,"w":2}`},
		{kindUpdate, `{"update":{"sessionUpdate":"agent_message_chunk","messageId":"1.m","content":{"type":"text","text":"x"}},"e":3,"w":2}`},
		{kindEnd, `{"prompt":"p","stop":"end_turn","e":9}`},
		{kindNotice, `{"severity":"info","title":"x"}`},
		{kindAsk, `{}`},
		{kindPrompt, `{`},
	} {
		f.Add(string(seed.kind), []byte(seed.data))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		kind := engine.Kind(name)
		once, err := forked(engine.Record{Kind: kind, Data: data}, "a", "b")
		if err != nil || once == nil {
			return
		}
		if kind == kindNotice {
			return // as it is
		}
		again, err := forked(engine.Record{Kind: kind, Data: once}, "a", "b")
		if err != nil || string(again) != string(once) {
			t.Errorf("%q, then %q, %v", once, again, err)
		}
	})
}

// FuzzChange: whatever another node wants to be changed, and whatever is kept of a session, is read, or refused without a
// panic.
func FuzzChange(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"session":"s","visit":3,"change":{"title":"x"}}`, `{"change":{"archived":true,"share":{"by":"ann","user":"jo","role":"viewer"}}}`,
		`{"change":null}`, `{"archived":true}`, `{"archived":null}`, `[]`, `{"change":{"share":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var w wireChange
		if json.Unmarshal(data, &w) == nil {
			var again wireChange
			if err := json.Unmarshal(encode(w), &again); err != nil || !cmp.Equal(w, again, cmp.AllowUnexported(wireChange{})) {
				t.Errorf("%s, then %s: %v", data, encode(again), err)
			}
		}
		if aside, err := archived(&engine.Session{ID: "s", Attributes: data}); err != nil && aside {
			t.Errorf("archived, but %v", err)
		}
	})
}

// FuzzLend: whatever a client wants to lend to, and whatever is kept of what is lent, is read, or refused without a panic.
func FuzzLend(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"sessionId":"s"}`, `{"sessionId":null}`, `{"sessionId":3}`, `{"readTextFile":true,"writeTextFile":true,"terminal":true}`,
		`{"lent":{"read":true},"offered":{"terminals":true}}`, `{"lent":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r LendRequest
		if json.Unmarshal(data, &r) == nil && r.lane() != string(r.SessionID) {
			t.Errorf("lane %q of session %q", r.lane(), r.SessionID)
		}
		var answer, again LendAnswer
		if json.Unmarshal(data, &answer) == nil {
			if err := json.Unmarshal(encode(answer), &again); err != nil || answer != again {
				t.Errorf("%+v, then %+v: %v", answer, again, err)
			}
		}
		var known, kept attributes
		if known.decode(data) == nil {
			if err := kept.decode(encode(known)); err != nil || kept.Lent != known.Lent || kept.Offered != known.Offered {
				t.Errorf("%+v, then %+v: %v", known, kept, err)
			}
		}
	})
}

// FuzzPast: whatever a record has, a page of history has an update that can be read of it, or nothing, for clients of both
// versions, and so does a backdrop.
func FuzzPast(f *testing.F) {
	kinds := []engine.Kind{kindPrompt, kindUpdate, kindChild, kindEnd, kindAsk, kindAnswer, kindNotice, kindShare, kindMark}
	for i, seed := range []string{
		`{"id":"m","by":"a","content":{"prompt":[{"type":"text","text":"x"}]}}`,
		`{"update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}}`,
		`{"prompt":"m","stop":"end_turn"}`, `{"id":"a","title":"t"}`, `{"id":"a","outcome":"allow","by":"x","name":"Allow"}`,
		`{"severity":"info","title":"t","description":"d"}`, `{"user":"u","role":"viewer"}`, `{}`,
	} {
		f.Add(i, []byte(seed))
	}
	f.Add(1, []byte(`{"update":{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}}`))
	f.Add(1, []byte(`{"update":{"sessionUpdate":"usage_update","used":1,"size":2}}`))
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		r := engine.Record{Seq: 1, Kind: kinds[uint(kind)%uint(len(kinds))], Data: data}
		new(backdrop).add(r)
		_, _ = beginsAt(r, "m")
		u, err := pastOf("s", &r)
		if err != nil || u == nil {
			return
		}
		if u.Update == nil {
			if u.Decided == nil {
				t.Errorf("%s %q: nothing", r.Kind, data)
			}
			return
		}
		if _, err := u.toV1(new(translate.ToV1)); err != nil {
			t.Errorf("%s %q: %v", r.Kind, data, err)
		}
	})
}
