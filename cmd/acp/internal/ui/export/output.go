package export

import "encoding/json"

// OutputText returns the raw output of a tool as text: the string if it is one; for an object, the
// member that common agents use for readable output, if it has one; and otherwise the JSON itself.
func OutputText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for _, name := range []string{"formatted_output", "formattedOutput", "output", "stdout", "content"} {
			if json.Unmarshal(members[name], &text) == nil && text != "" {
				return text
			}
		}
	}
	return string(raw)
}
