package standin

import (
	"encoding/json"
	"net/http"
	"strings"
)

// messages is a request for a message of Anthropic's interface.
type messages struct {
	Model    string
	Stream   bool
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Tools []struct {
		Name   string
		Schema json.RawMessage `json:"input_schema"`
	}
}

func readMessages(_ *http.Request, in messages) Request {
	var r Request
	for _, m := range in.Messages {
		if m.Role != "user" {
			r.Answers++
			continue
		}
		var blocks []struct {
			Type, Text string
			Content    json.RawMessage
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			r.user(texts(m.Content))
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				r.Results = append(r.Results, texts(b.Content))
			} else {
				r.user(b.Text)
			}
		}
	}
	for _, t := range in.Tools {
		r.offer(t.Name, t.Schema)
	}
	return r
}

func writeMessages(w *stream, _ *http.Request, in messages, st Step) {
	content := []object{}
	if st.Thought != "" {
		content = append(content, object{"type": "thinking", "thinking": st.Thought, "signature": signature(st.id)})
	}
	if len(st.Text) > 0 {
		content = append(content, object{"type": "text", "text": strings.Join(st.Text, "")})
	}
	reason := "end_turn"
	for i, c := range st.Calls {
		reason = "tool_use"
		content = append(content, object{"type": "tool_use", "id": callID(st.id, i), "name": c.Name, "input": c.Args})
	}
	message := object{"id": "msg_" + st.id, "type": "message", "role": "assistant", "model": in.Model,
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": st.Input, "output_tokens": st.Output}}
	if !in.Stream {
		message["content"], message["stop_reason"] = content, reason
		w.whole(message)
		return
	}
	event := func(kind string, o object) {
		o["type"] = kind
		w.send(kind, o)
	}
	w.begin()
	message["content"] = []object{}
	event("message_start", object{"message": message})
	index := 0
	if st.Thought != "" {
		event("content_block_start", object{"index": 0, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}})
		event("content_block_delta", object{"index": 0, "delta": object{"type": "thinking_delta", "thinking": st.Thought}})
		event("content_block_delta", object{"index": 0, "delta": object{"type": "signature_delta", "signature": signature(st.id)}})
		event("content_block_stop", object{"index": 0})
		index++
	}
	if len(st.Text) > 0 || st.Hang {
		event("content_block_start", object{"index": index, "content_block": object{"type": "text", "text": ""}})
		for _, t := range st.Text {
			event("content_block_delta", object{"index": index, "delta": object{"type": "text_delta", "text": t}})
		}
		if st.Hang {
			w.hang()
			return
		}
		event("content_block_stop", object{"index": index})
		index++
	}
	for i, c := range st.Calls {
		event("content_block_start", object{"index": index + i, "content_block": object{"type": "tool_use", "id": callID(st.id, i), "name": c.Name, "input": object{}}})
		event("content_block_delta", object{"index": index + i, "delta": object{"type": "input_json_delta", "partial_json": c.arguments()}})
		event("content_block_stop", object{"index": index + i})
	}
	event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": st.Output}})
	event("message_stop", object{})
}
