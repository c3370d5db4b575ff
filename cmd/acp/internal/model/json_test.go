package model

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestMessageJSON: a message is the same after it was written and read, opaque parts byte
// for byte.
func TestMessageJSON(t *testing.T) {
	o := Opaque{API: "messages/m", Data: json.RawMessage(`{"signature":"a+/=<&>","x":[1,2]}`)}
	want := &Message{Role: Assistant, Parts: []Part{
		&Thought{Text: "t", Opaque: o}, &Text{Text: "<&>\u2028", Opaque: o}, &Image{MIMEType: "image/png", Data: []byte{0, 255}},
		&ToolUse{ID: "i", Name: "n", Input: json.RawMessage(`{"a":"b"}`), Opaque: o},
		&ToolUse{ID: "j", Name: "n", Input: json.RawMessage(`"{"`), Malformed: true},
		&ToolResult{ID: "i", Failed: true, Parts: []Part{&Text{Text: "no"}, &Image{MIMEType: "image/gif", Data: []byte("g")}}},
	}}
	data, err := want.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	got := new(Message)
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Message{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, err := got.MarshalJSON()
	if err != nil || string(again) != string(data) {
		t.Errorf("%s\n%s, %v", data, again, err)
	}
}

func TestMessageJSONErrors(t *testing.T) {
	for data, want := range map[string]string{
		`[]`:               "cannot unmarshal array",
		`{"role":"robot"}`: `a message of the role "robot"`,
	} {
		if err := json.Unmarshal([]byte(data), new(Message)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"type":"text"}`), new(ToolResult)); err == nil {
		t.Error("a text is read as a result")
	}
	m := new(Message)
	if err := json.Unmarshal([]byte(`{"role":"user","parts":[{"type":"new"},{"type":"text","text":"a"}]}`), m); err != nil || len(m.Parts) != 1 {
		t.Errorf("%v, %v", m.Parts, err)
	}
	if _, err := json.Marshal(&Message{Role: User, Parts: []Part{nil}}); err == nil {
		t.Error("no part at all is written")
	}
}

// TestEncodedOnce: a message is encoded once for each interface, and what failed is tried
// again.
func TestEncodedOnce(t *testing.T) {
	m, n := new(Message), 0
	encode := func(*Message) ([]byte, error) {
		if n++; n == 1 {
			return nil, errors.New("not now")
		}
		return []byte{byte(n)}, nil
	}
	if _, err := m.Encoded("a", encode); err == nil {
		t.Error("no error")
	}
	for range 2 {
		if b, err := m.Encoded("a", encode); err != nil || b[0] != 2 {
			t.Errorf("%v, %v", b, err)
		}
	}
	if b, err := m.Encoded("b", encode); err != nil || b[0] != 3 {
		t.Errorf("%v, %v", b, err)
	}
	p := new(Prefix)
	if b, err := p.Encoded("a", func(*Prefix) ([]byte, error) { return []byte("p"), nil }); err != nil || string(b) != "p" {
		t.Errorf("%s, %v", b, err)
	}
}

// TestErrors: what an error says, and advises.
func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	e := &Error{Kind: KindRate, Provider: "p", Message: "slow", Status: 429, Err: cause}
	if e.Error() != "p: slow (rate, status 429)" || !errors.Is(e, cause) || !e.Temporary() {
		t.Errorf("%v", e)
	}
	if got := (&Error{Kind: KindAuth, Message: "no"}).Error(); got != "the provider: no (auth)" {
		t.Error(got)
	}
	for _, k := range []Kind{KindAuth, KindQuota, KindRate, KindOverloaded, KindOverflow, KindRequest, KindRefused, KindNetwork, KindStalled, KindAnswer} {
		if (&Error{Kind: k}).Advice() == "" {
			t.Errorf("%s: no advice", k)
		}
	}
	if (&Error{Kind: "new"}).Advice() != "" {
		t.Error("advice for a kind that there is not")
	}
}

// TestPrice: what an answer costs.
func TestPrice(t *testing.T) {
	u := Usage{Input: 1e6, CacheRead: 2e6, CacheWrite: 1e6, Output: 1e6}
	if cost, ok := (Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, Currency: "USD"}).Of(u); !ok || cost < 22.349 || cost > 22.351 {
		t.Errorf("%v, %t", cost, ok)
	}
	if _, ok := (Price{}).Of(u); ok {
		t.Error("a price that is not known")
	}
	if u.Read() != 4e6 {
		t.Errorf("%d", u.Read())
	}
}

// TestLongPrice: all tokens of a long request cost more, and what is kept for an hour does.
func TestLongPrice(t *testing.T) {
	p := Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5, Currency: "USD", Long: Tier{Above: 200_000, Input: 2, Output: 1.5}}
	for _, tt := range []struct {
		used Usage
		want float64
	}{
		{Usage{Input: 200_000, Output: 1000}, 0.41},
		{Usage{Input: 200_001, Output: 1000}, 0.815004},
		{Usage{Input: 1, CacheRead: 200_000, Output: 1000}, 0.095004},
		{Usage{CacheWrite: 100_000}, 0.25},
		{Usage{CacheWrite: 100_000, CacheHour: 100_000}, 0.4},
		{Usage{CacheWrite: 100_000, CacheHour: 50_000}, 0.325},
	} {
		if got, ok := p.Of(tt.used); !ok || got-tt.want > 1e-9 || tt.want-got > 1e-9 {
			t.Errorf("%+v costs %v, want %v", tt.used, got, tt.want)
		}
	}
}
