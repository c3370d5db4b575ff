package model

import (
	"encoding/json"
	"fmt"

	"github.com/goacp/acp/cmd/acp/internal/model/schema"
)

// The JSON form of a message is this program's own, for its journals: no provider sees it.

// A jsonPart is any part. Which fields it has depends on its type.
type jsonPart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	MIMEType  string          `json:"mimeType,omitempty"`
	Data      []byte          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Malformed bool            `json:"malformed,omitempty"`
	Parts     []jsonPart      `json:"parts,omitempty"`
	Failed    bool            `json:"failed,omitempty"`
	API       string          `json:"api,omitempty"`
	Opaque    json.RawMessage `json:"opaque,omitempty"`
}

type jsonMessage struct {
	Role  Role       `json:"role"`
	Parts []jsonPart `json:"parts"`
}

// MarshalJSON returns the JSON form of a message.
func (m *Message) MarshalJSON() ([]byte, error) {
	parts, err := toJSON(m.Parts)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(jsonMessage{m.Role, parts})
}

// UnmarshalJSON reads the JSON form. Parts of types that are not known are left out.
func (m *Message) UnmarshalJSON(data []byte) error {
	var j jsonMessage
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	if j.Role != User && j.Role != Assistant {
		return fmt.Errorf("a message of the role %q", j.Role)
	}
	m.Role, m.Parts = j.Role, fromJSON(j.Parts)
	return nil
}

// MarshalJSON returns the JSON form of a result.
func (r *ToolResult) MarshalJSON() ([]byte, error) {
	parts, err := toJSON([]Part{r})
	if err != nil {
		return nil, err
	}
	return schema.Marshal(parts[0])
}

// UnmarshalJSON reads the JSON form.
func (r *ToolResult) UnmarshalJSON(data []byte) error {
	var j jsonPart
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	if j.Type != "result" {
		return fmt.Errorf("a result of the type %q", j.Type)
	}
	r.ID, r.Parts, r.Failed = j.ID, fromJSON(j.Parts), j.Failed
	return nil
}

func toJSON(parts []Part) ([]jsonPart, error) {
	all := make([]jsonPart, 0, len(parts))
	for _, p := range parts {
		var j jsonPart
		var o Opaque
		switch p := p.(type) {
		case *Text:
			j, o = jsonPart{Type: "text", Text: p.Text}, p.Opaque
		case *Thought:
			j, o = jsonPart{Type: "thought", Text: p.Text}, p.Opaque
		case *Image:
			j = jsonPart{Type: "image", MIMEType: p.MIMEType, Data: p.Data}
		case *ToolUse:
			j, o = jsonPart{Type: "use", ID: p.ID, Name: p.Name, Input: p.Input, Malformed: p.Malformed}, p.Opaque
		case *ToolResult:
			inner, err := toJSON(p.Parts)
			if err != nil {
				return nil, err
			}
			j = jsonPart{Type: "result", ID: p.ID, Parts: inner, Failed: p.Failed}
		default:
			return nil, fmt.Errorf("a part of the type %T", p)
		}
		j.API, j.Opaque = o.API, o.Data
		all = append(all, j)
	}
	return all, nil
}

func fromJSON(parts []jsonPart) []Part {
	var all []Part
	for _, j := range parts {
		var o Opaque
		if j.API != "" {
			o = Opaque{API: j.API, Data: j.Opaque}
		}
		switch j.Type {
		case "text":
			all = append(all, &Text{Text: j.Text, Opaque: o})
		case "thought":
			all = append(all, &Thought{Text: j.Text, Opaque: o})
		case "image":
			all = append(all, &Image{MIMEType: j.MIMEType, Data: j.Data})
		case "use":
			all = append(all, &ToolUse{ID: j.ID, Name: j.Name, Input: j.Input, Malformed: j.Malformed, Opaque: o})
		case "result":
			all = append(all, &ToolResult{ID: j.ID, Parts: fromJSON(j.Parts), Failed: j.Failed})
		}
	}
	return all
}
