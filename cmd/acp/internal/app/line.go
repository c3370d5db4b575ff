package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"github.com/muesli/cancelreader"
)

// ReadLine reads a line of at most 1,000 bytes from a terminal until ctx is done, which is not an error.
func ReadLine(ctx context.Context, in *os.File) (string, error) {
	r, err := cancelreader.NewReader(in)
	if err != nil {
		return "", err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.Cancel() })()
	text, err := bufio.NewReader(io.LimitReader(r, 1000)).ReadString('\n')
	if err != nil && !errors.Is(err, cancelreader.ErrCanceled) && !errors.Is(err, io.EOF) {
		return "", err
	}
	return text, nil
}
