package shellline

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acphost"
)

// A commander is a program whose first operand is a subcommand. Rules that deny or ask are also
// compared with the command without the options that stand before it.
type commander struct {
	names  string
	source string // where the options before the subcommand are documented
	values string // those with a value, in the next word or joined
	flags  string // those without one
	plus   bool   // +NAME may stand before the subcommand, too
}

// Options that are in no list are read both ways: with a value, and without.
var commanders = []commander{
	{names: "git", source: "https://git-scm.com/docs/git", values: "-c -C --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
		flags: "-p -P -v -h --paginate --no-pager --no-replace-objects --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice --no-lazy-fetch --exec-path --version --help"},
	{names: "docker podman nerdctl", source: "https://docs.docker.com/reference/cli/docker/, https://docs.podman.io/en/latest/markdown/podman.1.html",
		values: "-c -H -l -n -a --config --context --host --log-level --tlscacert --tlscert --tlskey --connection --identity --root --runroot --url --storage-driver --namespace --address", flags: "-D -r --debug --tls --tlsverify --remote"},
	{names: "docker-compose podman-compose", source: "https://docs.docker.com/reference/cli/docker/compose/", values: "-f -p -H --file --project-name --profile --env-file --project-directory --ansi --parallel --progress --host", flags: "--verbose --dry-run --compatibility"},
	{names: "kubectl oc", source: "https://kubernetes.io/docs/reference/kubectl/kubectl/", flags: "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --disable-compression",
		values: "-n -s -v --namespace --context --cluster --user --kubeconfig --server --token --as --as-group --as-uid --cache-dir --certificate-authority --client-certificate --client-key --request-timeout --tls-server-name --v --vmodule --profile --profile-output --username --password"},
	{names: "npm pnpm yarn bun", source: "https://docs.npmjs.com/cli/using-npm/config, https://pnpm.io/pnpm-cli, https://yarnpkg.com/cli", flags: "-g -s -q -d -dd -ddd -y -r --global --silent --quiet --verbose --json --yes --offline --workspaces --if-present --no-color --recursive",
		values: "-C --prefix --dir --cwd --userconfig --globalconfig --location --registry --cache --loglevel --workspace --filter --otp --tag --reporter"},
	{names: "cargo rustup", source: "https://doc.rust-lang.org/cargo/commands/cargo.html", values: "-Z -C --config --color", flags: "-v -vv -q --verbose --quiet --locked --offline --frozen", plus: true},
	{names: "go", source: "https://pkg.go.dev/cmd/go", values: "-C"},
	{names: "gh glab", source: "https://cli.github.com/manual/gh", values: "-R --repo --hostname"},
	{names: "helm", source: "https://helm.sh/docs/helm/helm/", flags: "--debug --kube-insecure-skip-tls-verify",
		values: "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-as-user --kube-as-group --kube-ca-file --kube-tls-server-name --kube-token --registry-config --repository-cache --repository-config --burst-limit --qps"},
	{names: "terraform tofu", source: "https://developer.hashicorp.com/terraform/cli/commands"},
	{names: "systemctl", source: "systemctl(1)", values: "-H -M -t -p -P -n -o -s --host --machine --type --property --value --lines --output --signal --state --job-mode --root --kill-whom",
		flags: "-q -f -a -l -r --user --system --global --no-pager --no-block --quiet --force --now --all --full --no-ask-password --runtime --wait --no-reload --no-legend"},
	{names: "apt apt-get", source: "apt-get(8)", values: "-o -c -t -a --option --config-file --target-release --host-architecture", flags: "-y -q -qq -d -s -f -m -b -u -V --yes --assume-yes --quiet --no-install-recommends --download-only --simulate"},
	{names: "dnf yum", source: "dnf(8)", values: "-c -d -e -x -R --config --installroot --enablerepo --disablerepo --releasever --exclude", flags: "-y -q -v -C -b -4 -6 --assumeyes --quiet --verbose"},
	{names: "pip pip3 uv", source: "https://pip.pypa.io/en/stable/cli/pip/, https://docs.astral.sh/uv/reference/cli/", values: "--python --log --proxy --retries --timeout --cache-dir --directory --project --config-file --color", flags: "-q -v -qq -vv -n --quiet --verbose --isolated --offline --no-cache"},
	{names: "poetry pdm", source: "https://python-poetry.org/docs/cli/", values: "-C -P -p --directory --project", flags: "-q -v -vv -vvv -n --quiet --verbose --no-interaction --no-ansi --no-plugins"},
	{names: "aws", source: "https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-options.html", flags: "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager",
		values: "--profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout --cli-binary-format"},
	{names: "gcloud az", source: "https://cloud.google.com/sdk/gcloud/reference, https://learn.microsoft.com/cli/azure/", values: "--project --account --configuration --format --verbosity --impersonate-service-account --billing-project --subscription --output --query", flags: "-q --quiet --debug --verbose"},
	{names: "make gmake", source: "https://www.gnu.org/software/make/manual/html_node/Options-Summary.html", values: "-C -f -I -o -W --directory --file --makefile --include-dir --old-file --what-if --eval", flags: "-s -k -n -B -i -w -r -R --silent --keep-going --dry-run --always-make"},
	{names: "hg jj svn", source: "hg(1), https://jj-vcs.github.io/jj/latest/cli-reference/", values: "-R --repository --cwd --config --encoding --username --password", flags: "-q -v -y --quiet --verbose --noninteractive --no-pager"},
	{names: "pulumi fly flyctl vercel netlify firebase minikube composer adb tmux brew dotnet conda mamba redis-cli ip nix snap flatpak rclone restic borg kind k3d skaffold argocd vault consul nomad packer serverless wrangler supabase railway heroku doctl hcloud",
		source: "none: their options are read both ways"},
}

var commanderOf = byName(commanders, func(c *commander) string { return c.names })

// Bounds of the readings of a command. Beyond them it may be any of the program's.
const (
	maxForms  = 8
	maxStarts = 32
)

// A start is where an operand may begin, and whether that depends on an unknown option.
type start struct {
	at     int
	unsure bool
}

// operands returns the words which may be the next operand, from a word on, and whether that is all.
func (c *commander) operands(words []word, from int) (found []start, all bool) {
	queue := []start{{from, false}}
	for n := 0; n < len(queue); n++ {
		if n == maxStarts {
			return found, false
		}
		p := queue[n]
		if p.at >= len(words) {
			continue
		}
		w, t := words[p.at], words[p.at].Text
		add := func(by int, unsure bool) {
			next := start{p.at + by, p.unsure || unsure}
			if !slices.Contains(queue, next) {
				queue = append(queue, next)
			}
		}
		switch {
		case c.plus && strings.HasPrefix(t, "+"):
			add(1, false)
		case len(t) < 2 || t[0] != '-' || w.Open && w.split:
			found = append(found, p)
		case t == "--":
			found = append(found, start{p.at + 1, p.unsure})
		default:
			name, joined := splitOption(t)
			switch {
			case joined || hasWhole(c.flags, name):
				add(1, false)
			case hasWhole(c.values, name):
				add(2, false)
			case t[1] != '-' && hasWhole(c.values, t[:2]):
				add(1, false)
			default:
				add(1, true)
				add(2, true)
			}
		}
	}
	return found, true
}

// forms returns what a command is without the options before its subcommand, and without those
// between the subcommand and the next operand.
func (c *commander) forms(words []word) (out []acphost.CommandForm) {
	add := func(unsure bool, lists ...[]word) {
		f := acphost.CommandForm{Words: []acphost.CommandWord{words[0].CommandWord}, Unsure: unsure}
		for _, list := range lists {
			f.Words = append(f.Words, plain(list)...)
		}
		out = append(out, f)
	}
	first, all := c.operands(words, 1)
	for _, a := range first {
		if a.at >= len(words) {
			continue
		}
		if a.at > 1 {
			add(a.unsure, words[a.at:])
		}
		next, sure := c.operands(words, a.at+1)
		for _, b := range next {
			if sure = sure && len(out) < maxForms; !sure {
				break
			}
			if b.at > a.at+1 && b.at < len(words) {
				add(a.unsure || b.unsure, words[a.at:a.at+1], words[b.at:])
			}
		}
		if !sure {
			add(true, words[a.at:a.at+1], []word{{anywhere, true, false}})
		}
		if c.names == "git" {
			out = append(out, aliased(words, a.at)...)
		}
		if len(out) > 2*maxForms {
			all = false
			break
		}
	}
	if !all {
		out = append(out, acphost.CommandForm{Words: []acphost.CommandWord{words[0].CommandWord, anywhere}, Unsure: true})
	}
	return out
}

// aliased returns what git makes of a subcommand, which is word at, because of the options before
// it, and what it would make of one that the command defines.
func aliased(words []word, at int) (out []acphost.CommandForm) {
	subcommand := words[at].Text
	if subcommand == "bisect" && len(words) > at+2 && (words[at+1].Text == "view" || words[at+1].Text == "visualize") {
		out = append(out, acphost.CommandForm{Words: append([]acphost.CommandWord{words[0].CommandWord}, plain(words[at+2:])...)})
	}
	for i, o := range words[1:at] {
		if len(out) == maxForms {
			return out
		}
		_, set, ok := strings.Cut(o.Text, "alias.")
		name, text, _ := strings.Cut(set, "=")
		switch {
		case !ok || !strings.EqualFold(name, subcommand):
		case strings.HasPrefix(o.Text, "--config-env") || words[i].Text == "--config-env" || o.Open:
			out = append(out, acphost.CommandForm{Words: []acphost.CommandWord{anywhere}, Unsure: true})
		case !strings.HasPrefix(text, "!"):
			out = append(out, acphost.CommandForm{Words: append(inGit(words[0], text), plain(words[at+1:])...)})
		}
	}
	if subcommand != "config" {
		return out
	}
	for i := at + 1; i+1 < len(words) && len(out) < maxForms; i++ {
		if strings.HasPrefix(words[i].Text, "alias.") {
			f := acphost.CommandForm{Words: inGit(words[0], words[i+1].Text), Unsure: true}
			f.Words[len(f.Words)-1].Open = words[i+1].Open
			out = append(out, f)
		}
	}
	return out
}

// inGit returns the words of a command of git.
func inGit(program word, text string) []acphost.CommandWord {
	out := []acphost.CommandWord{program.CommandWord}
	for s := range strings.FieldsSeq(text) {
		out = append(out, acphost.CommandWord{Text: s, Source: s})
	}
	return out
}

// undashed returns git push for git-push: a command of git that is called by the name of its program.
func undashed(command string, words []word) acphost.CommandForm {
	verb := words[0].CommandWord
	verb.Text = command
	list := []acphost.CommandWord{{Text: "git", Source: "git"}, verb}
	return acphost.CommandForm{Words: append(list, plain(words[1:])...)}
}
