module github.com/goacp/acp/acpws

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/goacp/acp v0.1.0
)
