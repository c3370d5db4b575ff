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
		FunctionDeclarations []struct{ Name string }
	}
}

func readGenerate(_ *http.Request, in generate) request {
	var r request
	for _, c := range in.Contents {
		if c.Role != "user" && c.Role != "function" {
			continue
		}
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				r.results = append(r.results, string(p.FunctionResponse.Response))
			} else {
				r.user(p.Text)
			}
		}
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			r.tools = append(r.tools, f.Name)
		}
	}
	return r
}

// writeGenerate answers generateContent, streamGenerateContent and countTokens.
func writeGenerate(w *stream, r *http.Request, _ generate, st step) {
	model, verb, _ := strings.Cut(r.PathValue("call"), ":")
	answer := func(parts []object, reason string) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if reason != "" {
			candidate["finishReason"] = reason
		}
		return object{
			"candidates":    []object{candidate},
			"modelVersion":  model,
			"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
		}
	}
	last := []object{}
	if st.call != nil {
		last = []object{{"functionCall": object{"name": st.call.Name, "args": st.call.Args}}}
	}
	switch verb {
	case "countTokens":
		w.whole(object{"totalTokens": 10})
	case "generateContent":
		w.whole(answer(append([]object{{"text": strings.Join(st.text, "")}}, last...), "STOP"))
	case "streamGenerateContent":
		w.begin()
		for i, t := range st.text {
			if !st.hang && st.call == nil && i == len(st.text)-1 {
				w.send("", answer([]object{{"text": t}}, "STOP"))
				return
			}
			w.send("", answer([]object{{"text": t}}, ""))
		}
		if st.hang {
			w.hang()
			return
		}
		w.send("", answer(last, "STOP"))
	default:
		http.NotFound(w.w, r)
	}
}
