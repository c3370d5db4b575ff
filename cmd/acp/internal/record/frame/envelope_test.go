package frame

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	var r Reader
	raw := func(s string) []byte { return []byte(s) }
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name, frame string
		want        Envelope
		is          string // which of Request, Notification and Answer it is
	}{
		{"request", ` { "id" : 1 , "method" : "m" , "params" : { "sessionId" : "s" } } `, Envelope{Method: "m", ID: raw("1"), Params: raw(`{ "sessionId" : "s" }`), Session: "s"}, "r"},
		{"notification", `{"method":"m","params":[1]}`, Envelope{Method: "m", Params: raw("[1]")}, "n"},
		{"answer", `{"id":"a","result":null}`, Envelope{ID: raw(`"a"`), Result: raw("null")}, "a"},
		{"failure", `{"id":null,"error":{}}`, Envelope{ID: raw("null"), Error: raw("{}")}, "a"},
		{"neither", `{"id":1}`, Envelope{ID: raw("1")}, ""},
		{"long", `{"id":1,"method":"` + long + `","params":{"sessionId":"` + long + `"}}`, Envelope{Method: long, ID: raw("1"), Params: raw(`{"sessionId":"` + long + `"}`), Session: long}, "r"},
		{"update", `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"k","x":1}}}`, Envelope{
			Method: "session/update", Params: raw(`{"sessionId":"s","update":{"sessionUpdate":"k","x":1}}`),
			Session: "s", Update: raw(`{"sessionUpdate":"k","x":1}`), Kind: "k",
		}, "n"},
		{"update of something else", `{"method":"m","params":{"update":{"sessionUpdate":"k"}}}`, Envelope{Method: "m", Params: raw(`{"update":{"sessionUpdate":"k"}}`)}, "n"},
		{"update that is no object", `{"method":"session/update","params":{"update":"k"}}`, Envelope{Method: "session/update", Params: raw(`{"update":"k"}`), Update: raw(`"k"`)}, "n"},
		// What comes twice: the last one at the top, the first one within.
		{"twice", `{"method":"a","method":"b","id":1,"id":2}`, Envelope{Method: "b", ID: raw("2")}, "r"},
		{"two sessions", `{"method":"m","params":{"sessionId":"a","sessionId":"b"}}`, Envelope{Method: "m", Params: raw(`{"sessionId":"a","sessionId":"b"}`), Session: "a"}, "n"},
		{"one is none", `{"method":"m","params":{"sessionId":1,"sessionId":"b"}}`, Envelope{Method: "m", Params: raw(`{"sessionId":1,"sessionId":"b"}`)}, "n"},
		{"two updates", `{"method":"session/update","params":{"update":{},"update":1}}`, Envelope{Method: "session/update", Params: raw(`{"update":{},"update":1}`), Update: raw("{}")}, "n"},

		{"batch", `[{"id":1,"method":"m"}]`, Envelope{}, ""},
		{"cut off", `{"id":1,"method":"m"`, Envelope{}, ""},
		{"more", `{"id":1,"method":"m"} 1`, Envelope{}, ""},
		{"nothing", ``, Envelope{}, ""},
	} {
		got := r.Read([]byte(c.frame))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		is := ""
		for _, k := range []struct {
			is   bool
			what string
		}{{got.Request(), "r"}, {got.Notification(), "n"}, {got.Answer(), "a"}} {
			if k.is {
				is += k.what
			}
		}
		if is != c.is {
			t.Errorf("%s: is %q, want %q", c.name, is, c.is)
		}
	}
}

// TestOwned: strings live on when the frame does not.
func TestOwned(t *testing.T) {
	frame := []byte(`{"id":1,"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"k"}}}`)
	e := new(Reader).Read(frame)
	clear(frame)
	if e.Method != "session/update" || e.Session != "s" || e.Kind != "k" {
		t.Errorf("%+v", e)
	}
}

func TestFind(t *testing.T) {
	data := []byte(`{"a":{"b":{"c":"x\n"},"n":null},"a":1,"\u0064":[{"e":1}]}`)
	for _, c := range []struct {
		path       string
		want, text string
	}{
		{"", string(data), ""},
		{"a/b/c", `"x\n"`, "x\n"},
		{"a/b", `{"c":"x\n"}`, ""},
		{"a/n", "null", ""},
		{"d", `[{"e":1}]`, ""},
		{"d/e", "", ""},
		{"a/x", "", ""},
		{"a/x/y", "", ""},
		{"A", "", ""},
	} {
		path := strings.FieldsFunc(c.path, func(r rune) bool { return r == '/' })
		if got := string(Find(data, path...)); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
		if got := Member(data, path...); got != c.text {
			t.Errorf("%s: %q, want %q", c.path, got, c.text)
		}
	}
	if Find(nil, "a") != nil || Member(nil) != "" || Text([]byte("7")) != "" {
		t.Error("there is something in nothing")
	}
}

// FuzzRead: what is in an envelope is JSON, and of a frame that is.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"k"}}}`))
	f.Add([]byte(`{"id":[],"result":{},"error":1}`))
	f.Add([]byte(`[{"id":1`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		e := new(Reader).Read(frame)
		for _, v := range [][]byte{e.ID, e.Params, e.Result, e.Error, e.Update} {
			if v != nil && (!json.Valid(v) || !bytes.Contains(frame, v)) {
				t.Errorf("%q in %q", v, frame)
			}
		}
		if (e.Request() || e.Notification() || e.Answer()) && !json.Valid(frame) {
			t.Errorf("%q is none", frame)
		}
		if e.Session != Member(e.Params, "sessionId") || e.Kind != Member(e.Update, "sessionUpdate") {
			t.Errorf("session %q, kind %q in %q", e.Session, e.Kind, frame)
		}
	})
}
