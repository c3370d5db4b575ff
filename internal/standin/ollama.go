package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// ollamaChat is a request to Ollama.
type ollamaChat struct {
	Model    string
	Messages []struct{ Role, Content string }
	Tools    []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
}

func readOllama(_ *http.Request, in ollamaChat) Request {
	var r Request
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			r.user(m.Content)
		case "assistant":
			r.Answers++
		case "tool":
			r.Results = append(r.Results, m.Content)
		}
	}
	for _, t := range in.Tools {
		r.offer(t.Function.Name, t.Function.Parameters)
	}
	return r
}

func writeOllama(w *stream, _ *http.Request, in ollamaChat, st Step) {
	w.w.Header().Set("Content-Type", "application/x-ndjson")
	line := func(o object) {
		o["model"] = in.Model
		_ = json.NewEncoder(w.w).Encode(o)
		_ = http.NewResponseController(w.w).Flush() // a client that left is noticed by the context
	}
	say := func(m object) { m["role"] = "assistant"; line(object{"message": m, "done": false}) }
	if st.Thought != "" {
		say(object{"content": "", "thinking": st.Thought})
	}
	for _, t := range st.Text {
		say(object{"content": t})
	}
	if st.Hang {
		w.hang()
		return
	}
	var calls []object
	for i, c := range st.Calls {
		calls = append(calls, object{"id": callID(st.id, i), "function": object{"name": c.Name, "arguments": c.Args}})
	}
	if len(calls) > 0 {
		say(object{"content": "", "tool_calls": calls})
	}
	line(object{"message": object{"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": st.Input, "eval_count": st.Output})
}

// refuseOllama answers as Ollama does that cannot use a request.
func refuseOllama(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, "{\"error\":%q}", strings.ToValidUTF8(why, ""))
}
