package model

import "context"

// A Choice is a model that can be used.
type Choice struct {
	Ref   string // PROVIDER/MODEL, or script:FILE
	Name  string // for people
	About string // what is worth knowing, such as how large its window is; may be empty
}

// A Source has the models that sessions can choose from. It is never changed: what sets
// it up in another way returns another one. Its methods may be called from any goroutine.
type Source interface {
	// List returns the choices; new sessions begin with the first one. Without look only
	// those are there that are known without asking anybody; with it, servers on this
	// machine are asked, too, which takes a moment. There may be none.
	List(ctx context.Context, look bool) []Choice
	// Open returns the model that a reference names. Nothing is sent.
	Open(ref string) (Model, error)
	// Effort returns how much a model thinks in new sessions; "" is as it does by itself.
	Effort() string

	// Services returns the providers.
	Services() []Service
	// With returns a source in which a provider is as s says.
	With(s Service) (Source, error)
}

// A Service is a provider as clients of the agent see it.
type Service struct {
	Name string
	// Speaks are the interfaces that it can be set to; the first is its usual one.
	Speaks []string
	URL    string // the base; "" is the interface's own
	// Header is sent with each request. It is never returned.
	Header  map[string]string
	Enabled bool
	Local   bool // it runs on this machine, and needs no key
}
