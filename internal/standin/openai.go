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
	Tools []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
}

func readChat(_ *http.Request, in chat) Request {
	var r Request
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			r.user(texts(m.Content))
		case "assistant":
			r.Answers++
		case "tool":
			r.Results = append(r.Results, texts(m.Content))
		}
	}
	for _, t := range in.Tools {
		r.offer(t.Function.Name, t.Function.Parameters)
	}
	return r
}

func writeChat(w *stream, _ *http.Request, in chat, st Step) {
	usage := object{"prompt_tokens": st.Input, "completion_tokens": st.Output, "total_tokens": st.Input + st.Output}
	message := object{"role": "assistant", "content": strings.Join(st.Text, "")}
	reason := "stop"
	var calls []object
	for i, c := range st.Calls {
		reason = "tool_calls"
		calls = append(calls, object{"index": i, "id": callID(st.id, i), "type": "function",
			"function": object{"name": c.Name, "arguments": c.arguments()}})
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
	for _, t := range st.Text {
		chunk(object{"content": t}, nil)
	}
	if st.Hang {
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
	Tools []struct {
		Type, Name string
		Parameters json.RawMessage
	}
}

func readResponses(_ *http.Request, in response) Request {
	var items []struct {
		Type, Role string
		Content    json.RawMessage
		Output     json.RawMessage
	}
	var r Request
	answering := false
	if json.Unmarshal(in.Input, &items) != nil {
		r.user(texts(in.Input))
	}
	for _, i := range items {
		own := i.Role == "assistant" || i.Type == "reasoning" || strings.HasSuffix(i.Type, "_call")
		if own && !answering {
			r.Answers++
		}
		answering = own
		switch {
		case i.Role == "user":
			r.user(texts(i.Content))
		case strings.HasSuffix(i.Type, "_call_output"):
			r.Results = append(r.Results, texts(i.Output))
		}
	}
	for _, t := range in.Tools {
		if t.Name != "" {
			r.offer(t.Name, t.Parameters)
		}
	}
	return r
}

func writeResponses(w *stream, _ *http.Request, in response, st Step) {
	frame := object{"id": "resp_" + st.id, "object": "response", "created_at": 1, "model": in.Model, "status": "in_progress", "output": []object{}}
	w.begin()
	event := func(kind string, o object) {
		o["type"] = kind
		w.send(kind, o)
	}
	event("response.created", object{"response": frame})
	output := []object{}
	done := func(item object) {
		event("response.output_item.done", object{"output_index": len(output), "item": item})
		output = append(output, item)
	}
	if st.Thought != "" {
		event("response.output_item.added", object{"output_index": 0, "item": object{"id": "rs_" + st.id, "type": "reasoning", "summary": []object{}}})
		event("response.reasoning_summary_part.added", object{"item_id": "rs_" + st.id, "output_index": 0, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
		event("response.reasoning_summary_text.delta", object{"item_id": "rs_" + st.id, "output_index": 0, "summary_index": 0, "delta": st.Thought})
		done(object{"id": "rs_" + st.id, "type": "reasoning", "encrypted_content": signature(st.id), "summary": []object{{"type": "summary_text", "text": st.Thought}}})
	}
	item := object{"id": "msg_" + st.id, "type": "message", "role": "assistant", "status": "in_progress", "content": []object{}}
	if len(st.Text) > 0 || st.Hang {
		event("response.output_item.added", object{"output_index": len(output), "item": item})
		for _, t := range st.Text {
			event("response.output_text.delta", object{"item_id": "msg_" + st.id, "output_index": len(output), "content_index": 0, "delta": t})
		}
		if st.Hang {
			w.hang()
			return
		}
		item["status"] = "completed"
		item["content"] = []object{{"type": "output_text", "text": strings.Join(st.Text, ""), "annotations": []object{}}}
		done(item)
	}
	for i, c := range st.Calls {
		id := callID(st.id, i)
		call := object{"id": "fc_" + id, "call_id": id, "status": "completed", "name": c.Name, "type": "function_call", "arguments": c.arguments()}
		// A tool that takes free text has no arguments.
		if text, ok := c.Args.(string); ok {
			delete(call, "arguments")
			call["type"], call["input"], call["status"] = "custom_tool_call", "", "in_progress"
			event("response.output_item.added", object{"output_index": len(output), "item": call})
			for piece := range strings.Lines(text) {
				event("response.custom_tool_call_input.delta", object{"item_id": call["id"], "output_index": len(output), "delta": piece})
			}
			event("response.custom_tool_call_input.done", object{"item_id": call["id"], "output_index": len(output), "input": text})
			call["input"], call["status"] = text, "completed"
		}
		done(call)
	}
	frame["status"], frame["output"] = "completed", output
	frame["usage"] = object{"input_tokens": st.Input, "output_tokens": st.Output, "total_tokens": st.Input + st.Output,
		"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0}}
	event("response.completed", object{"response": frame})
}
