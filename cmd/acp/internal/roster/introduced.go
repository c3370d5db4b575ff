package roster

import "github.com/goacp/acp"

// Introduced is what an agent has said about itself: nothing where the library has had to write
// "unknown", as for agents of version 1, which need not say who they are.
func Introduced(info acp.Implementation) acp.Implementation {
	const unknown = "unknown"
	if info.Name == unknown && info.Version == unknown {
		return acp.Implementation{}
	}
	return info
}
