package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A chat is a request for a chat completion.
type chat struct {
	Model    string
	Stream   bool
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Tools []struct{ Function struct{ Name string } }
}

func readChat(_ *http.Request, in chat) request {
	var r request
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			r.user(texts(m.Content))
		case "tool":
			r.results = append(r.results, texts(m.Content))
		}
	}
	for _, t := range in.Tools {
		r.tools = append(r.tools, t.Function.Name)
	}
	return r
}

func writeChat(w *stream, _ *http.Request, in chat, st step) {
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	message := object{"role": "assistant", "content": strings.Join(st.text, "")}
	reason := "stop"
	var calls []object
	if st.call != nil {
		reason = "tool_calls"
		calls = []object{{"index": 0, "id": "call_" + st.id, "type": "function",
			"function": object{"name": st.call.Name, "arguments": st.call.arguments()}}}
		message["tool_calls"] = calls
	}
	frame := object{"id": "chatcmpl_" + st.id, "created": 1, "model": in.Model}
	if !in.Stream {
		frame["object"], frame["usage"] = "chat.completion", usage
		frame["choices"] = []object{{"index": 0, "message": message, "finish_reason": reason}}
		w.whole(frame)
		return
	}
	frame["object"] = "chat.completion.chunk"
	chunk := func(delta object, reason any) {
		frame["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": reason}}
		w.send("", frame)
	}
	w.begin()
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, t := range st.text {
		chunk(object{"content": t}, nil)
	}
	if st.hang {
		w.hang()
		return
	}
	if calls != nil {
		chunk(object{"tool_calls": calls}, nil)
	}
	chunk(object{}, reason)
	frame["choices"], frame["usage"] = []object{}, usage
	w.send("", frame)
	fmt.Fprint(w.w, "data: [DONE]\n\n")
}

// A response is a request for one.
type response struct {
	Model string
	Input json.RawMessage
	Tools []struct{ Type, Name string }
}

func readResponses(_ *http.Request, in response) request {
	var items []struct {
		Type, Role string
		Content    json.RawMessage
		Output     json.RawMessage
	}
	var r request
	if json.Unmarshal(in.Input, &items) != nil {
		r.user(texts(in.Input))
	}
	for _, i := range items {
		switch {
		case i.Role == "user":
			r.user(texts(i.Content))
		case strings.HasSuffix(i.Type, "_call_output"):
			r.results = append(r.results, texts(i.Output))
		}
	}
	for _, t := range in.Tools {
		if t.Name != "" {
			r.tools = append(r.tools, t.Name)
		}
	}
	return r
}

func writeResponses(w *stream, _ *http.Request, in response, st step) {
	frame := object{"id": "resp_" + st.id, "object": "response", "created_at": 1, "model": in.Model, "status": "in_progress", "output": []object{}}
	w.begin()
	event := func(kind string, o object) {
		o["type"] = kind
		w.send(kind, o)
	}
	event("response.created", object{"response": frame})
	item := object{"id": "msg_" + st.id, "type": "message", "role": "assistant", "status": "in_progress", "content": []object{}}
	event("response.output_item.added", object{"output_index": 0, "item": item})
	for _, t := range st.text {
		event("response.output_text.delta", object{"item_id": "msg_" + st.id, "output_index": 0, "content_index": 0, "delta": t})
	}
	if st.hang {
		w.hang()
		return
	}
	item["status"] = "completed"
	item["content"] = []object{{"type": "output_text", "text": strings.Join(st.text, ""), "annotations": []object{}}}
	event("response.output_item.done", object{"output_index": 0, "item": item})
	output := []object{item}
	if st.call != nil {
		call := object{"id": "fc_" + "call_" + st.id, "call_id": "call_" + st.id, "status": "completed", "name": st.call.Name,
			"type": "function_call", "arguments": st.call.arguments()}
		// A tool that takes free text has no arguments.
		if text, ok := st.call.Args.(string); ok {
			call["type"], call["input"] = "custom_tool_call", text
			delete(call, "arguments")
		}
		event("response.output_item.done", object{"output_index": 1, "item": call})
		output = append(output, call)
	}
	frame["status"], frame["output"] = "completed", output
	frame["usage"] = object{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
		"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0}}
	event("response.completed", object{"response": frame})
}
