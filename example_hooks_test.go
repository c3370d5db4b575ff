package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// Middleware is written once for both versions. This one logs every call, and refuses
// prompts that hold a secret.
func ExampleMiddleware() {
	logged := func(ctx context.Context, call *acp.Call, next func(context.Context) error) error {
		err := next(ctx)
		fmt.Println(call.Method, call.StopReason, err)
		return err
	}
	guarded := func(ctx context.Context, call *acp.Call, next func(context.Context) error) error {
		if call.Turn != nil && call.Turn.Text() == "my password is 1234" {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no secrets, please")
		}
		return next(ctx)
	}
	agent := acp.Agent{
		Middleware: []acp.Middleware{logged, guarded}, // the first is outermost
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say("hello")
		},
	}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	for _, prompt := range []string{"hi", "my password is 1234"} {
		session.Prompt(ctx, acp.Text(prompt)).Wait()
	}
	// Output:
	// initialize  <nil>
	// session/new  <nil>
	// session/prompt end_turn <nil>
	// session/prompt  no secrets, please (-32602)
}

// A client can measure, log or refuse what its agent asks, whatever it is.
func ExampleClient_middleware() {
	agent := acp.Agent{
		Info: acp.Implementation{Name: "reporter", Version: "1.0.0"},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			allowed := t.Permit(acp.Permission{Title: "Send the report?"})
			return acp.StopEndTurn, t.Say(fmt.Sprintf("sent: %t", allowed))
		},
	}
	client := acp.Client{
		Middleware: []acp.Middleware{
			func(ctx context.Context, call *acp.Call, next func(context.Context) error) error {
				err := next(ctx)
				fmt.Println(acp.ClientConnFrom(ctx).Agent().Name, "asked for", call.Method, err)
				return err
			},
		},
		RequestPermission: func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return r.Allow(), nil
		},
	}
	ctx := context.Background()
	conn, err := client.Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	said, _, err := session.Prompt(ctx, acp.Text("report")).Text()
	fmt.Println(said, err)
	// Output:
	// reporter asked for session/request_permission <nil>
	// sent: true <nil>
}

// The agent offers to remember the answer, and asks no more once it may do so always.
func ExampleOutput_Ask() {
	always := false // one for each session, where there are several
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			if !always {
				decision, err := t.Ask(acp.Permission{Title: "Run the tests?", Command: "go test ./..."})
				if err != nil {
					return "", err
				}
				if !decision.Allowed {
					return acp.StopEndTurn, t.Say("Then I will not.")
				}
				always = decision.Option.Kind == acp.PermissionOptionKindAllowAlways
			}
			return acp.StopEndTurn, t.Say("I am running them.")
		},
	}
	client := acp.Client{
		RequestPermission: func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			for _, option := range r.Options {
				fmt.Println(r.Title, option.Name)
			}
			return r.AllowAlways(), nil
		},
	}
	ctx := context.Background()
	conn, err := client.Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		said, _, err := session.Prompt(ctx, acp.Text("test it")).Text()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(said)
	}
	// Output:
	// Run the tests? Allow
	// Run the tests? Always allow
	// Run the tests? Reject
	// Run the tests? Always reject
	// I am running them.
	// I am running them.
}

// Options of a session: one of them is the model, which the client can change.
func ExampleAgentSession_SetOptions() {
	agent := acp.Agent{
		NewSession: func(ctx context.Context, s *acp.AgentSession) error {
			return s.SetOptions(
				acp.ChoiceOption("model", "Model", acp.SessionConfigOptionCategoryModel, "small", "small", "large"),
				acp.SwitchOption("web", "Search the web", false),
			)
		},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			s := t.Session()
			return acp.StopEndTurn, t.Say(fmt.Sprintf("I use %s, web %t.", s.Option("model"), s.OptionOn("web")))
		},
	}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	for _, option := range session.Options() {
		fmt.Println(option.ConfigID, option.Name)
	}
	if err := session.SetOption(ctx, "model", &acp.SessionConfigOptionValueID{Value: "large"}); err != nil {
		log.Fatal(err)
	}
	said, _, err := session.Prompt(ctx, acp.Text("what do you use?")).Text()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(said)
	// Output:
	// model Model
	// web Search the web
	// I use large, web false.
}

// An agent asks the user to fill in a form.
func ExampleOutput_Elicit() {
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			answer, err := t.Elicit(acp.FormRequest{
				Message: "Where is it to be deployed?",
				Schema: acp.ElicitationSchema{
					Properties: []acp.ElicitationProperty{
						{Name: "region", Schema: &acp.StringPropertySchema{Title: "Region", Enum: []string{"eu", "us"}}},
					},
					Required: []string{"region"},
				},
			})
			switch {
			case errors.Is(err, errors.ErrUnsupported):
				return acp.StopEndTurn, t.Say("Tell me the region in your prompt.")
			case err != nil:
				return "", err
			case !answer.Accepted:
				return acp.StopEndTurn, t.Say("Then I will not deploy.")
			}
			return acp.StopEndTurn, t.Say(fmt.Sprintf("I deploy to %s.", answer.Content["region"]))
		},
	}
	client := acp.Client{
		Elicit: func(ctx context.Context, r *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			fmt.Println(r.Message)
			return acp.AcceptElicitation(map[string]json.RawMessage{"region": json.RawMessage(`"eu"`)}), nil
		},
	}
	ctx := context.Background()
	conn, err := client.Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	said, _, err := session.Prompt(ctx, acp.Text("deploy")).Text()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(said)
	// Output:
	// Where is it to be deployed?
	// I deploy to "eu".
}

// A failure of the application reaches the client with what it can act on.
func ExampleFailure() {
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			return "", &acp.Failure{Message: "slow down", Reason: "rate_limit", RetryAfter: 30e9, Scope: "account"}
		},
	}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = session.Prompt(ctx, acp.Text("hi")).Wait()
	var failure *acp.Failure
	if errors.As(err, &failure) {
		fmt.Println(failure.Reason, failure.Scope, failure.RetryAfter)
	}
	// Output: rate_limit account 30s
}

// A method of one's own: its name begins with an underscore.
func ExampleAgent_extensions() {
	type countRequest struct {
		Text string `json:"text"`
	}
	type countResponse struct {
		Words int `json:"words"`
	}
	count := jsonrpc.Method[countRequest, countResponse]{Name: "_example.org/count"}
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
		Extensions: func(mux *jsonrpc.Mux) {
			count.Handle(mux, func(ctx context.Context, r *countRequest) (*countResponse, error) {
				fmt.Println("asked in version", acp.AgentConnFrom(ctx).Version())
				return &countResponse{Words: len(r.Text) / 4}, nil
			})
		},
	}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	res, err := count.Call(ctx, conn.Conn(), &countRequest{Text: "how many words"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Words)
	// Output:
	// asked in version 2
	// 3
}
