module github.com/goacp/acp/interop

go 1.26.0

require (
	github.com/goacp/acp v0.0.0
	github.com/google/go-cmp v0.7.0
)

require github.com/coder/acp-go-sdk v0.13.0 // indirect

replace github.com/goacp/acp => ../

tool (
	github.com/coder/acp-go-sdk/example/agent
	github.com/coder/acp-go-sdk/example/client
)
