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
	Tools []struct{ Name string }
}

func readMessages(_ *http.Request, in messages) request {
	var r request
	for _, m := range in.Messages {
		if m.Role != "user" {
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
				r.results = append(r.results, texts(b.Content))
			} else {
				r.user(b.Text)
			}
		}
	}
	for _, t := range in.Tools {
		r.tools = append(r.tools, t.Name)
	}
	return r
}

func writeMessages(w *stream, _ *http.Request, in messages, st step) {
	content := []object{{"type": "text", "text": strings.Join(st.text, "")}}
	reason := "end_turn"
	if st.call != nil {
		reason = "tool_use"
		content = append(content, object{"type": "tool_use", "id": "call_" + st.id, "name": st.call.Name, "input": st.call.Args})
	}
	message := object{"id": "msg_" + st.id, "type": "message", "role": "assistant", "model": in.Model,
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 10, "output_tokens": 5}}
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
	event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	for _, t := range st.text {
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": t}})
	}
	if st.hang {
		w.hang()
		return
	}
	event("content_block_stop", object{"index": 0})
	if st.call != nil {
		event("content_block_start", object{"index": 1, "content_block": object{"type": "tool_use", "id": "call_" + st.id, "name": st.call.Name, "input": object{}}})
		event("content_block_delta", object{"index": 1, "delta": object{"type": "input_json_delta", "partial_json": st.call.arguments()}})
		event("content_block_stop", object{"index": 1})
	}
	event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	event("message_stop", object{})
}
