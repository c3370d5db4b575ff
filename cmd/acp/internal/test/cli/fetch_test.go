package cli

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// fetch is a command of the scripts: fetch [-stranger] [-host NAME] [-until TEXT] FILE PATH finds an
// address in a file, opens the page there, unless it is a stranger, and prints what the page has at a
// path: the status, and what follows, of events up to the one called end, or to a line with a text. The
// port of the page is in place of PORT in the name of the host.
func fetch() {
	f := flag.NewFlagSet("fetch", flag.ExitOnError)
	stranger, host, until := f.Bool("stranger", false, ""), f.String("host", "", ""), f.String("until", "", "")
	_ = f.Parse(os.Args[1:])
	if err := fetchPage(f.Arg(0), f.Arg(1), *host, *until, *stranger); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fetchPage(file, path, host, until string, stranger bool) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+\n`).FindString(string(data))
	if address == "" {
		return errors.New("there is no address in " + file)
	}
	page, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	c := &http.Client{Jar: jar, Timeout: time.Minute}
	if !stranger {
		res, err := c.Get(page.String())
		if err != nil {
			return err
		}
		_ = res.Body.Close()
	}
	ref, err := url.Parse(path)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodGet, page.ResolveReference(ref).String(), nil)
	if err != nil {
		return err
	}
	req.Host = strings.ReplaceAll(host, "PORT", page.Port())
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode)
	if res.Header.Get("Content-Type") != "text/event-stream" {
		_, err := io.Copy(os.Stdout, res.Body)
		return err
	}
	for r := bufio.NewReader(res.Body); ; {
		line, err := r.ReadString('\n')
		if err != nil || line == "event: end\n" {
			return err
		}
		fmt.Print(line)
		if until != "" && strings.Contains(line, until) {
			return nil
		}
	}
}
