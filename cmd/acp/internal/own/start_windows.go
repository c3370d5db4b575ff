package own

import "context"

// A Config says how the server in the background is started, where that is offered.
type Config struct {
	State, Program string
	Args, Environ  []string
}

// Start returns the server of the user that runs already: here none is started.
func Start(ctx context.Context, cfg Config) (Server, error) {
	s, ok, err := Find(ctx, cfg.State)
	if err == nil && !ok {
		err = ErrUnsupported
	}
	return s, err
}

// Socket is not offered here.
func Socket(string) (string, error) { return "", ErrUnsupported }

// Stop is not offered here: such a server has a window of its own.
func Stop(context.Context, string, Server) error { return ErrUnsupported }
