package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/standin"
)

// TestTools: each interface is told of the tools that it takes, in its own words, and of no others.
func TestTools(t *testing.T) {
	tools := []Tool{
		{Name: "fit", Description: "F", Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`)},
		{Name: "one", Description: "O", Schema: json.RawMessage(`{"oneOf":[{"properties":{"id":{"const":1}},"required":["id"]},{"$ref":"#/$defs/N"}],"$defs":{"N":{"type":"object","properties":{"name":{"type":["string","null"]}}}}}`)},
		{Name: "dollar", Schema: json.RawMessage(`{"type":"object","properties":{"$filter":{"type":"string"}},"required":["$filter"]}`)},
		{Name: "text", Schema: json.RawMessage(`{"type":"string"}`)},
	}
	for api, judged := range map[API]string{
		"": "responses", APIMessages: "messages", APIResponses: "responses", APIOpenAI: "responses", APIChat: "plain", APIOllama: "ollama",
	} {
		var names []string
		for _, f := range (Info{API: api}).Tools(tools) {
			names = append(names, f.Name)
			if err := standin.JudgeSchema(judged, f.Schema); err != nil {
				t.Errorf("%s: %s: %v\n%s", api, f.Name, err, f.Schema)
			}
			if f.Name == "fit" && string(f.Schema) != string(tools[0].Schema) {
				t.Errorf("%s: %s", api, f.Schema)
			}
			if f.Name == "one" && f.Description != "O\nThe input has one of these sets of members: id; name." {
				t.Errorf("%s: %s", api, f.Description)
			}
		}
		want := "fit one dollar"
		if api == APIMessages {
			want = "fit one"
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", api, got, want)
		}
	}
}

// TestPicture: what cannot be sent is a text that says so.
func TestPicture(t *testing.T) {
	for _, tt := range []struct {
		info Info
		data string
		want string
	}{
		{Info{Images: true}, "x", "(An image is not here: it is not a PNG, JPEG, GIF or WebP image.)"},
		{Info{Images: true, API: APIOllama}, "\x89PNG\r\n\x1a\n", "(An image is not here: it is damaged: unexpected EOF.)"},
		{Info{}, "x", "(An image is here, which you cannot see.)"},
	} {
		got, ok := tt.info.Picture(&Image{MIMEType: "image/png", Data: []byte(tt.data)}).(*Text)
		if !ok || got.Text != tt.want {
			t.Errorf("%+v, want %s", got, tt.want)
		}
	}
}
