module github.com/goacp/acp/interop

go 1.26.0

require github.com/goacp/acp v0.0.0

replace github.com/goacp/acp => ../
