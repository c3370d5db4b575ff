package standin

import (
	"encoding/json"
	"net/http"
	"strings"
)

// generate is a request for content of Google's interface.
type generate struct {
	Contents []struct {
		Role  string
		Parts []struct {
			Text             string
			FunctionResponse *struct{ Response json.RawMessage }
		}
	}
	Tools []struct {
		FunctionDeclarations []struct {
			Name       string
			Parameters json.RawMessage
			Schema     json.RawMessage `json:"parametersJsonSchema"`
		}
	}
}

func readGenerate(_ *http.Request, in generate) Request {
	var r Request
	for _, c := range in.Contents {
		if c.Role != "user" && c.Role != "function" {
			r.Answers++
			continue
		}
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				r.Results = append(r.Results, string(p.FunctionResponse.Response))
			} else {
				r.user(p.Text)
			}
		}
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			if f.Schema == nil {
				f.Schema = f.Parameters
			}
			r.offer(f.Name, f.Schema)
		}
	}
	return r
}

// writeGenerate answers generateContent, streamGenerateContent and countTokens.
func writeGenerate(w *stream, r *http.Request, _ generate, st Step) {
	model, verb, _ := strings.Cut(r.PathValue("call"), ":")
	answer := func(parts []object, reason string) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if reason != "" {
			candidate["finishReason"] = reason
		}
		return object{
			"candidates":    []object{candidate},
			"modelVersion":  model,
			"usageMetadata": object{"promptTokenCount": st.Input, "candidatesTokenCount": st.Output, "totalTokenCount": st.Input + st.Output},
		}
	}
	last := []object{}
	for _, c := range st.Calls {
		last = append(last, object{"functionCall": object{"name": c.Name, "args": c.Args}})
	}
	switch verb {
	case "countTokens":
		w.whole(object{"totalTokens": 10})
	case "generateContent":
		w.whole(answer(append([]object{{"text": strings.Join(st.Text, "")}}, last...), "STOP"))
	case "streamGenerateContent":
		w.begin()
		for i, t := range st.Text {
			if !st.Hang && len(st.Calls) == 0 && i == len(st.Text)-1 {
				w.send("", answer([]object{{"text": t}}, "STOP"))
				return
			}
			w.send("", answer([]object{{"text": t}}, ""))
		}
		if st.Hang {
			w.hang()
			return
		}
		w.send("", answer(last, "STOP"))
	default:
		http.NotFound(w.w, r)
	}
}
