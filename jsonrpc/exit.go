package jsonrpc

import "errors"

// errGoexit stands for what foreign code returns when it ends its goroutine. The
// package documentation says why that is survived.
var errGoexit = errors.New("handler called runtime.Goexit")

// survive calls f. If f ends the goroutine with [runtime.Goexit], survive calls exited
// before the goroutine ends, which cannot be prevented.
func survive(f, exited func()) {
	returned := false
	defer func() {
		if !returned {
			exited()
		}
	}()
	f()
	returned = true
}

// protect is survive for code that may panic, too. failed gets the value of the
// panic, after which protect returns, or errGoexit.
func protect(f func(), failed func(p any)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover()
		if p == nil {
			p = errGoexit
		}
		failed(p)
	}()
	f()
	returned = true
}
