// Command bench compares this module with its peers: github.com/coder/acp-go-sdk,
// the official TypeScript SDK on Node, and a bare pipe that moves the same bytes.
// Every workload runs for all of them in one run, in interleaved rounds, so
// that ratios hold on a noisy machine where absolute numbers do not.
//
//	npm ci          # once, for the TypeScript SDK
//	go run .        # everything, about six minutes
//	go run . -quick # about one minute
//	go run . -check # exit status 1 when a target is missed
//	go run . -write # also writes RESULTS.md
//	go run . -only /(http|ws) -write # the network alone, into RESULTS.md
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"time"
)

func main() {
	// The subjects run in processes of their own, which are this program too.
	if len(os.Args) == 3 && os.Args[1] == "agent" {
		exit(runAgent(os.Args[2]))
	}
	if len(os.Args) == 4 && os.Args[1] == "agent" {
		exit(runNetAgent(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 4 && os.Args[1] == "client" {
		exit(runClient(os.Args[2], os.Args[3]))
	}
	exit(run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// flags are what the command line says.
type flags struct {
	only, without             string
	rounds                    int
	quick, check, write, list bool
}

// parse reads the arguments with a set of flags that is empty so far.
func parse(set *flag.FlagSet, args []string) (*flags, error) {
	f := new(flags)
	set.StringVar(&f.only, "only", "", "run the workloads whose name matches this `regexp`")
	set.IntVar(&f.rounds, "rounds", 0, "number of rounds; 0 means 9, or 3 with -quick")
	set.BoolVar(&f.quick, "quick", false, "shorter and fewer measurements")
	set.BoolVar(&f.check, "check", false, "exit with status 1 when a target is missed")
	set.BoolVar(&f.write, "write", false, "write RESULTS.md; with -only, just what was measured is replaced there")
	set.BoolVar(&f.list, "list", false, "print the names of the workloads and stop")
	set.StringVar(&f.without, "without", "", "comma-separated `subjects` to leave out: ours, app, coder, ts, bare, each")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return f, nil
}

func run() error {
	f, err := parse(flag.CommandLine, os.Args[1:])
	if err != nil {
		return err
	}
	match, err := regexp.Compile(f.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if f.rounds <= 0 {
		f.rounds = 9
		if f.quick {
			f.rounds = 3
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	var chosen []*workload
	for _, w := range workloads() {
		if match.MatchString(w.name) {
			chosen = append(chosen, w)
		}
	}
	if f.list {
		for _, w := range chosen {
			fmt.Printf("%-22s %s\n", w.name, w.title)
		}
		return nil
	}
	r := &runner{rounds: f.rounds, quick: f.quick, skip: map[string]string{}}
	for _, s := range strings.Split(f.without, ",") {
		if s != "" {
			r.skip[s] = "left out"
		}
	}
	if err := r.findNode(); err != nil && r.skip[tsName] == "" {
		fmt.Fprintln(os.Stderr, "bench: without the TypeScript SDK:", err)
		r.skip[tsName] = err.Error()
	}
	if fi, err := os.Stderr.Stat(); err == nil {
		r.tty = fi.Mode()&os.ModeCharDevice != 0
	}
	begin := time.Now()
	var results []*outcome
	for _, w := range chosen {
		o, err := r.run(ctx, w)
		if err != nil {
			return err
		}
		results = append(results, o)
		printOutcome(os.Stdout, o)
	}
	verdicts := judge(results)
	printVerdicts(os.Stdout, verdicts)
	fmt.Printf("\n%s in all\n", time.Since(begin).Round(time.Second))
	if f.write {
		rep := report{results: results, verdicts: verdicts, rounds: f.rounds, took: time.Since(begin), part: f.only != ""}
		if err := rep.write("RESULTS.md"); err != nil {
			return err
		}
	}
	if f.check {
		for _, v := range verdicts {
			if v.known && !v.met {
				return fmt.Errorf("targets were missed")
			}
		}
	}
	return nil
}
