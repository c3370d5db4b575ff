// Package models is the command acp models: it lists the language models that the built-in
// agent can use, tries one, and explains what was found and what is missing.
package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/catalog"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Verbs of the command.
const (
	verbList   = "list"
	verbTest   = "test"
	verbDoctor = "doctor"
	verbUpdate = "update"
)

// Advice says, in two lines, how to get a model.
const Advice = `Set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY or DEEPSEEK_API_KEY,
or start Ollama, llama.cpp, LM Studio or vLLM on this machine. acp models doctor says more.`

// Options are the flags and arguments of the command.
type Options struct {
	App    *app.App
	Verb   string // list, test, doctor or update
	Ref    string // of the model to try; "" is the default
	Source string // of the catalogue: a file or a URL; "" is that of its authors
	JSON   bool
}

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			switch {
			case len(args) == 0:
			case verb == verbTest:
				o.Ref = args[0]
			case verb == verbUpdate:
				o.Source = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{Use: "models", Short: "List, try and explain the language models of the built-in agent"}
	list := &cobra.Command{
		Use: "list", Short: "List the models that can be used",
		Long: `List the models that the built-in agent can use: that of the settings, those of
providers for which there is a key, and those of servers on this machine, which are
asked. The first one, marked with *, is used unless you say otherwise.`,
		Args: cobra.NoArgs, RunE: run(verbList),
	}
	test := &cobra.Command{
		Use: "test [PROVIDER/MODEL]", Short: "Ask a model for one word",
		Long: `Ask a model for one word, and print how long that took, how many tokens it used and
what it cost. Without an argument the default model is asked.`,
		Args: cobra.MaximumNArgs(1), RunE: run(verbTest),
	}
	doctor := &cobra.Command{
		Use: "doctor", Short: "Explain which models were found, and what is missing",
		Long: `Explain for each provider where its key is from, where it answers and which models
it has. Servers on this machine are asked for their models. No key is sent.

The marks are ✓ for what can be used, and · for what is missing. The exit status is 0
if there is a model that can be used.`,
		Args: cobra.NoArgs, RunE: run(verbDoctor),
	}
	update := &cobra.Command{
		Use: "update [FILE|URL]", Short: "Fetch what is known of models: windows, prices, abilities",
		Long: `Fetch what is known of models (windows, prices, abilities) and keep it in the data
directory, where it counts more than what the program was built with. The data is
that of https://catwalk.charm.sh, or a file or URL of the same form.`,
		Args: cobra.MaximumNArgs(1), RunE: run(verbUpdate),
	}
	for _, c := range []*cobra.Command{list, doctor} {
		c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object per line")
	}
	cmd.AddCommand(list, test, doctor, update)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if o.Verb == verbUpdate {
		return o.update(ctx)
	}
	m, err := o.App.Models()
	if err != nil {
		return err
	}
	switch o.Verb {
	case verbTest:
		return o.test(ctx, m)
	case verbDoctor:
		return o.doctor(ctx, m)
	}
	return o.list(ctx, m)
}

// line makes text of providers safe to print.
func line(text string) string { return safetext.Line(text, 500) }

// A row is a model in the list. It is what --json prints.
type row struct {
	Model   string  `json:"model"`
	Name    string  `json:"name,omitempty"`
	Default bool    `json:"default,omitempty"`
	Context int     `json:"context,omitempty"` // tokens
	Output  int     `json:"output,omitempty"`  // tokens
	Input   float64 `json:"inputPrice,omitempty"`
	Written float64 `json:"outputPrice,omitempty"`
	Unit    string  `json:"currency,omitempty"` // for a million tokens
	Images  bool    `json:"images,omitempty"`
	Local   bool    `json:"local,omitempty"`
	Error   string  `json:"error,omitempty"` // why it cannot be used

	Efforts []string `json:"efforts,omitempty"`
}

// list prints the models that can be used.
func (o *Options) list(ctx context.Context, m *catalog.Models) error {
	var rows []row
	for i, c := range m.List(ctx, true) {
		r := row{Model: c.Ref, Name: c.Name, Default: i == 0}
		opened, err := m.Open(c.Ref)
		if err != nil {
			r.Error = err.Error()
		} else {
			info := opened.Info()
			r.Context, r.Output, r.Images, r.Local, r.Efforts = info.Context, info.Output, info.Images, info.Local, info.Efforts
			r.Input, r.Written, r.Unit = info.Price.Input, info.Price.Output, info.Price.Currency
		}
		rows = append(rows, r)
	}
	if o.JSON {
		for _, r := range rows {
			if err := safetext.PrintJSON(o.App.Out, r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		fmt.Fprintln(o.App.Out, "There is no language model. "+Advice)
		return nil
	}
	w := tabwriter.NewWriter(o.App.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tWINDOW\tPER MILLION TOKENS\tEFFORTS")
	for _, r := range rows {
		name, window, price, efforts := line(r.Model), "", "", strings.Join(r.Efforts, " ")
		if r.Default {
			name += " *"
		}
		if r.Context > 0 {
			window = fmt.Sprintf("%dk", r.Context/1000)
		}
		switch {
		case r.Error != "":
			price = line(r.Error)
		case r.Unit != "":
			price = fmt.Sprintf("%g read, %g written %s", r.Input, r.Written, r.Unit)
		case r.Local:
			price = "(your own server)"
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join([]string{name, window, price, efforts}, "\t"), "\t"))
	}
	return w.Flush()
}

// patience is how long a test may take.
const patience = 2 * time.Minute

// test asks a model for a word.
func (o *Options) test(ctx context.Context, m *catalog.Models) error {
	ref := o.Ref
	if ref == "" {
		all := m.List(ctx, true)
		if len(all) == 0 {
			return exitcode.Errorf(exitcode.Usage, "there is no language model to try. %s", strings.ReplaceAll(Advice, "\n", " "))
		}
		ref = all[0].Ref
	}
	opened, err := m.Open(ref)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "%w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := o.App.Out
	fmt.Fprintf(out, "%s: asking for one word\n", line(ref))
	began := time.Now()
	var first time.Duration
	var text strings.Builder
	var usage model.Usage
	r := &model.Request{
		Prefix:   &model.Prefix{System: "You are tested. Answer with the word that you are asked for, and nothing else."},
		Messages: []*model.Message{{Role: model.User, Parts: []model.Part{&model.Text{Text: "Say: ready"}}}},
	}
	for e, err := range opened.Generate(ctx, r) {
		if err != nil {
			return o.failed(err)
		}
		switch e := e.(type) {
		case *model.TextDelta:
			if first == 0 {
				first = time.Since(began)
			}
			text.WriteString(e.Text)
		case *model.Retrying:
			fmt.Fprintf(out, "  trying again in %v: %s\n", e.After.Round(100*time.Millisecond), line(e.Err.Error()))
		case *model.Done:
			usage = e.Usage
		}
	}
	fmt.Fprintf(out, "✓ it says %q after %v, done after %v\n", line(strings.TrimSpace(text.String())), first.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	info := opened.Info()
	if usage.Known {
		fmt.Fprintf(out, "  tokens: %d read, %d written", usage.Read(), usage.Output)
		if cost, ok := info.Price.Of(usage); ok {
			fmt.Fprintf(out, ", which cost %.5f %s", cost, info.Price.Currency)
		}
		fmt.Fprintln(out)
	}
	switch {
	case info.Verified:
		fmt.Fprintf(out, "  window: %d tokens, as the server says\n", info.Context)
	case info.Context > 0:
		fmt.Fprintf(out, "  window: %d tokens\n", info.Context)
	default:
		fmt.Fprintln(out, "  window: not known; set context in [providers] to have conversations compacted in time")
	}
	if info.Local && info.Context > 0 && info.Context < 32_000 {
		fmt.Fprintln(out, "! that is little for a coding agent: 32000 tokens or more are better")
	}
	return nil
}

// failed says what the user can do about a model that does not answer.
func (o *Options) failed(err error) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return err
	}
	code := exitcode.Protocol
	if e.Kind == model.KindAuth {
		code = exitcode.Auth
	}
	return exitcode.Errorf(code, "%s. %s", line(e.Error()), e.Advice())
}

// doctor explains what there is.
func (o *Options) doctor(ctx context.Context, m *catalog.Models) error {
	usable := false
	for _, s := range m.Examine(ctx) {
		ok := s.Err == nil && s.Needs == "" && (!s.Local || len(s.Models) > 0)
		usable = usable || ok
		if o.JSON {
			v := struct {
				catalog.Status
				OK    bool   `json:"ok"`
				Error string `json:"error,omitempty"`
			}{Status: s, OK: ok}
			if s.Err != nil {
				v.Error = s.Err.Error()
			}
			if err := safetext.PrintJSON(o.App.Out, v); err != nil {
				return err
			}
			continue
		}
		o.explain(s, ok)
	}
	if o.JSON {
		return nil
	}
	all := m.List(ctx, true)
	if len(all) > 0 {
		fmt.Fprintf(o.App.Out, "\nThe built-in agent uses %s, unless you choose another one.\n", line(all[0].Ref))
		return nil
	}
	fmt.Fprintln(o.App.Out, "\nThere is no language model. "+strings.TrimSuffix(Advice, " acp models doctor says more."))
	if !usable {
		return exitcode.Errorf(exitcode.Failed, "no language model can be used")
	}
	return nil
}

// explain prints what there is of a provider.
func (o *Options) explain(s catalog.Status, ok bool) {
	mark := "·"
	if ok {
		mark = "✓"
	}
	var what string
	switch {
	case s.Needs != "":
		what = "no key: set " + s.Needs
	case s.Err != nil:
		what = "no answer from " + line(s.URL)
	case s.Local && len(s.Models) == 0:
		what = "it runs at " + line(s.URL) + ", and has no model"
	case s.Local:
		what = "it runs at " + line(s.URL)
	default:
		what = "the key is from " + s.Key
	}
	fmt.Fprintf(o.App.Out, "%s %-10s  %s\n", mark, line(s.Provider), what)
	if len(s.Models) > 0 {
		names := s.Models[:min(len(s.Models), 5)]
		more := ""
		if n := len(s.Models) - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(o.App.Out, "  %-10s  %s%s\n", "", line(strings.Join(names, ", ")), more)
	}
}

// source is where the catalogue is from unless the user says otherwise.
const source = "https://catwalk.charm.sh/v2/providers"

// maxCatalog bounds a catalogue, in bytes.
const maxCatalog = 16 << 20

// update fetches the catalogue.
func (o *Options) update(ctx context.Context) error {
	cfg, err := o.App.Config()
	if err != nil {
		return err
	}
	if cfg.Dirs.Data == "" {
		return exitcode.Errorf(exitcode.Usage, "there is no directory for data: set XDG_DATA_HOME or HOME")
	}
	from := o.Source
	if from == "" {
		from = source
	}
	data, err := fetch(ctx, from)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", line(from), err)
	}
	made, n, err := catalog.Convert(data, from, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", line(from), err)
	}
	file := filepath.Join(cfg.Dirs.Data, "models.json")
	if err := os.MkdirAll(cfg.Dirs.Data, 0o700); err != nil {
		return err
	}
	next := file + ".next"
	if err := os.WriteFile(next, made, 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, file); err != nil {
		return err
	}
	fmt.Fprintf(o.App.Out, "%d models are in %s now.\n", n, file)
	return nil
}

// fetch reads a file or a URL.
func fetch(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		f, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return readAll(f)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return readAll(resp.Body)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCatalog+1))
	if len(data) > maxCatalog {
		return nil, fmt.Errorf("it has more than %d MiB", maxCatalog>>20)
	}
	return data, err
}
