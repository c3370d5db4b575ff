module github.com/goacp/acp/bench

go 1.26.0

require (
	github.com/coder/acp-go-sdk v0.13.0
	github.com/coder/websocket v1.8.15
	github.com/goacp/acp v0.1.0
	github.com/goacp/acp/acpws v0.1.0
	github.com/google/go-cmp v0.7.0
)

replace github.com/goacp/acp => ../

replace github.com/goacp/acp/acpws => ../acpws
