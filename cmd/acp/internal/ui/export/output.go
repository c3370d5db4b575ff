package export

import "encoding/json"

// OutputText returns the raw output of a tool as text: a string as it is, the member of an object that is
// meant for people if it has one, and any other JSON as it is written.
func OutputText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for _, name := range []string{"formatted_output", "formattedOutput", "output", "stdout"} {
			if json.Unmarshal(members[name], &text) == nil && text != "" {
				return text
			}
		}
	}
	return string(raw)
}
