package roster

import "github.com/goacp/acp"

// Introduced returns what an agent has said about itself. It is empty where the library has written
// "unknown", as it does for agents of version 1, which need not introduce themselves.
func Introduced(info acp.Implementation) acp.Implementation {
	const unknown = "unknown"
	if info.Name == unknown && info.Version == unknown {
		return acp.Implementation{}
	}
	return info
}
