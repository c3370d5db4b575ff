package stream

import (
	"bytes"
	"slices"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Messages appends the messages of a request, as encode makes them for an interface, to a list that is open, and closes
// it. Those of the conversation are encoded once; a form that is empty is left out.
func Messages(b []byte, r *model.Request, form string, encode func(*model.Message) ([]byte, error)) ([]byte, error) {
	var before []byte
	add := func(form []byte) {
		if len(form) > 0 {
			b = Append(Append(b, alternate(before, form)), form)
			before = form
		}
	}
	for _, m := range r.Messages {
		f, err := m.Encoded(form, encode)
		if err != nil {
			return nil, err
		}
		add(f)
	}
	if len(r.Tail) > 0 {
		f, err := encode(&model.Message{Role: model.User, Parts: r.Tail})
		if err != nil {
			return nil, err
		}
		add(f)
	}
	return append(b, ']'), nil
}

// Append appends an element to a list that is open; nothing if its form is empty.
func Append(b, form []byte) []byte {
	if len(form) > 0 && b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return append(b, form...)
}

// alternate returns what is put between the encoded forms of two messages: a message of the assistant where two of the
// user would follow each other, which templates of some models refuse. That happens if a turn has failed or was
// cancelled before there was an answer. Objects begin with their role.
func alternate(before, next []byte) []byte {
	const role, user = `{"role":"`, `{"role":"user"`
	if !bytes.HasPrefix(next, []byte(user)) {
		return nil
	}
	last := bytes.LastIndex(before, []byte(role))
	if last < 0 || !bytes.HasPrefix(before[last:], []byte(user)) {
		return nil
	}
	return []byte(`{"role":"assistant","content":"(no answer)"}`)
}

// UseOf returns the last wish for a tool that has an id in a conversation; nil if there is none.
func UseOf(messages []*model.Message, id string) *model.ToolUse {
	for _, m := range slices.Backward(messages) {
		for _, p := range m.Parts {
			if u, ok := p.(*model.ToolUse); ok && u.ID == id {
				return u
			}
		}
	}
	return nil
}
