package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/goacp/acp/internal/wire"
)

// TestID: S10–S12.
func TestID(t *testing.T) {
	for _, tt := range []struct {
		in                     string
		null, integer, str, ok bool
	}{
		{"1", false, true, false, true},
		{"-5", false, true, false, true},
		{"1.0", false, true, false, true},
		{"1e3", false, true, false, true},
		{"1.5", false, false, false, true},
		{"1e-3", false, false, false, true},
		{"1e999", false, false, false, true},
		{`"1"`, false, false, true, true},
		{`"\u00e9\n"`, false, false, true, true},
		{"null", true, false, false, true},
		{"true", false, false, false, false},
		{"{}", false, false, false, false},
		{"[1]", false, false, false, false},
		{"1 2", false, false, false, false},
		{"", false, false, false, false},
	} {
		var id ID
		err := id.UnmarshalJSON([]byte(tt.in))
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if !tt.ok {
			if !id.IsZero() {
				t.Errorf("%s: a failure left %s", tt.in, id)
			}
			continue
		}
		if id.IsNull() != tt.null || id.IsInteger() != tt.integer || id.IsString() != tt.str || id.IsZero() {
			t.Errorf("%s: null %v, integer %v, string %v", tt.in, id.IsNull(), id.IsInteger(), id.IsString())
		}
		if out, err := json.Marshal(id); err != nil || string(out) != tt.in {
			t.Errorf("%s became %s, %v", tt.in, out, err)
		}
	}
	for _, tt := range []struct {
		a, b  string
		equal bool
	}{
		{"1", "1", true}, {"1", "1.0", true}, {"10", "1e1", true}, {"1", `"1"`, false}, {"1.5", "1.5", true}, {"1", "1.5", false},
		{`"a"`, `"\u0061"`, true}, {`"a"`, `"b"`, false}, {"null", `"null"`, false}, {"9007199254740993", "9007199254740992.0", false},
	} {
		a, b := ID{tt.a}, ID{tt.b}
		if a.Equal(b) != tt.equal || b.Equal(a) != tt.equal {
			t.Errorf("%s and %s: equal is not %v", tt.a, tt.b, tt.equal)
		}
	}
	var zero ID
	if !zero.IsZero() || zero.IsNull() || zero.IsInteger() || zero.IsString() || zero.Equal(nullID()) || zero.String() != "" {
		t.Error("zero ID")
	}
	if b, _ := zero.AppendJSON(nil); string(b) != "null" {
		t.Errorf("zero ID is sent as %s", b)
	}
	if s, ok := StringID("a\"b").Text(); !ok || s != "a\"b" || StringID("a\"b").String() != `"a\"b"` {
		t.Error(s, ok)
	}
	if _, ok := IntID(5).Text(); ok || IntID(-5).String() != "-5" || !nullID().IsNull() {
		t.Error("constructors")
	}
	var d wire.Decoder
	d.Reset([]byte("\"\xff\""), false)
	var id ID
	if id.decodeJSON(&d); id != StringID("\ufffd") { // S2: never invalid UTF-8 on the wire
		t.Errorf("%q", id)
	}
}

func TestError(t *testing.T) {
	e := Errorf(-32042, "no %s", "luck").WithData(map[string]int{"a": 1})
	if e.Error() != "no luck (-32042)" || string(e.Data) != `{"a":1}` {
		t.Error(e, string(e.Data))
	}
	if (&Error{Code: 5}).Error() != "error 5" {
		t.Error((&Error{Code: 5}).Error())
	}
	wrapped := fmt.Errorf("x: %w", ErrAuthRequired.WithData(1))
	if !errors.Is(wrapped, ErrAuthRequired) || errors.Is(wrapped, ErrInternal) || errors.Is(ErrClosed, ErrInternal) {
		t.Error("errors.Is")
	}
	if ErrAuthRequired.Data != nil || ErrAuthRequired.WithData(func() {}).Data != nil {
		t.Error("data")
	}
}

func TestMux(t *testing.T) {
	mux := echoMux()
	for name, want := range map[string][2]bool{"session/prompt": {true, false}, "session/update": {false, true}, "nobody": {}} {
		rs := mux.find([]byte(name))
		if got := [2]bool{rs.route(mux, false) != nil, rs.route(mux, true) != nil}; got != want {
			t.Error(name, got)
		}
	}
	for _, f := range []func(){
		func() { prompt.Handle(mux, nil) },
		func() { Notification[note]{}.Handle(mux, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

// TestOwnID: the id of a call is recognized however a number's fraction is written, and
// nothing else is.
func TestOwnID(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "3": 3, "3.0": 3, "3.000": 3, "0.0": 0, "120.0": 120, "123456789012345678": 123456789012345678,
		"": -1, ".0": -1, "3.": -1, "3.1": -1, "3.01": -1, "03": -1, "3e0": -1, "-3": -1, `"3"`: -1, "null": -1, "3.0.0": -1,
		"1234567890123456789": -1,
	} {
		n, ok := ownID([]byte(text))
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s is %d", text, n)
		}
	}
}
