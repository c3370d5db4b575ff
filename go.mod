module github.com/goacp/acp

go 1.26.0

require github.com/google/go-cmp v0.7.0

require honnef.co/go/tools v0.8.2 // indirect
