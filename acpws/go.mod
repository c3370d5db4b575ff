module github.com/goacp/acp/acpws

go 1.26.0

replace github.com/goacp/acp => ../

require (
	github.com/coder/websocket v1.8.15
	github.com/goacp/acp v0.0.0
)
