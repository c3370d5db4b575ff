package acp

// Text returns the text that the update adds to the agent's answer, or "".
// Thoughts are no part of the answer.
func (u *Update) Text() string {
	if m, ok := u.Update.(*AgentMessageChunk); ok {
		if t, ok := m.Content.(*TextContent); ok {
			return t.Text
		}
	}
	return ""
}
