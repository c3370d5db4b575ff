package exec

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
)

// A terminal asks the user on the controlling terminal of the process, because the standard streams
// of a script are often redirected. Questions are asked one at a time.
type terminal struct {
	in, out *os.File
	mu      sync.Mutex // one question at a time
	lines   chan string
}

// openTerminal opens the controlling terminal. It fails where there is none, as in a cron job.
func openTerminal() (*terminal, error) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	r, err := os.OpenFile(in, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	w, err := os.OpenFile(out, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	t := &terminal{in: r, out: w, lines: make(chan string)}
	// A read from a terminal cannot be cancelled, so one goroutine reads the answers to all
	// questions. It ends when close closes the file, or with the process.
	go func() {
		defer close(t.lines)
		scan := bufio.NewScanner(r)
		for scan.Scan() {
			t.lines <- scan.Text()
		}
	}()
	return t, nil
}

func (t *terminal) close() {
	_ = t.in.Close()
	_ = t.out.Close()
}

// ask is [backend.Frontend]'s Ask. An empty id dismisses the request; that is also the answer when
// the terminal is closed.
func (t *terminal) ask(ctx context.Context, _ *backend.Session, req acphost.Request) (acp.PermissionOptionID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	for _, line := range plain.Question(req) {
		fmt.Fprintln(t.out, line)
	}
	for {
		fmt.Fprint(t.out, "Your choice (number, or Enter to dismiss): ")
		select {
		case line, ok := <-t.lines:
			if !ok {
				return "", nil
			}
			if id, ok := plain.Choice(req, line); ok {
				return id, nil
			}
			fmt.Fprintln(t.out, "That is not one of the choices.")
		case <-ctx.Done():
			fmt.Fprintln(t.out, "\nThe question was withdrawn.")
			return "", ctx.Err()
		}
	}
}
