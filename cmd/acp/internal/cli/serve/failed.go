package serve

import (
	"errors"
	"fmt"

	"github.com/goacp/acp/internal/process"
)

// failed notes that an agent did not start, and why.
func (o *Options) failed(text string, err error) {
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		if why := process.Reason(exit.Stderr); why != "" {
			text += ": " + why
		}
	} else {
		text = fmt.Sprintf("%s (%v)", text, err)
	}
	o.note(text)
}
