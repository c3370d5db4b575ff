package agent

func runMCP(k *task) error {
	k.say("MCP servers are not used yet.")
	return nil
}
