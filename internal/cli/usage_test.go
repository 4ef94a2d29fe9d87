package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// A usageCase is a command line that is refused, what is said of it, and a part
// of the hint.
type usageCase struct {
	args       []string
	says, hint string
}

const someOID = "0123456789012345678901234567890123456789"

func landUsage() []usageCase {
	return []usageCase{
		{[]string{"main"}, `"main" is no command of git land, and what it works on goes elsewhere`, "git land -m NOTE -- main "},
		{[]string{"-m", "x", "main"}, `"main" is no command of git land, and what it works on goes elsewhere`, "paths go behind --: git land -m x -- main "},
		{[]string{"-m", "x", "a", "--dry-run", "b"}, `"a" is no command of git land, and what it works on goes elsewhere`, "git land -m x --dry-run -- a b "},
		{[]string{"--mesage", "x"}, "git land has no option --mesage", "did you mean: --message "},
		{[]string{"--mesage", "x", "--", "a"}, "git land has no option --mesage", "did you mean: --message "},
		{[]string{"verify", "--chek=lint", "-x", "true"}, "git land verify has no option --chek", "did you mean: --check "},
		{[]string{"a file"}, `"a file" is no command of git land, and what it works on goes elsewhere`, "git land -m NOTE -- 'a file' "},
		{[]string{"status", "main"}, `git land status does not understand "main"`, "git land status -- main   (and a target is named with --onto main)"},
		{[]string{"verify", "-x", "true", "main"}, `git land verify does not understand "main"`, "git land verify -x true -- main "},
		{[]string{"log", "main"}, `git land log does not understand "main"`, "git land log -h"},
		{[]string{"log", "--", "main"}, `git land log does not understand "main"`, "git land log -h"},
		{[]string{"--bogus"}, "git land has no option --bogus", "git land -h"},
		{[]string{"--wait"}, "git land has no option --wait", "git land -h"},
		{[]string{"--onto", "a..b"}, `invalid value "a..b" for option --onto: not the name of a branch`, "git land -h"},
		{[]string{"--unit", ""}, "option --unit has an empty value", "git land -h"},
		{[]string{"-x", ""}, "option -x has an empty value", "git land -h"},
		{[]string{"--timeout", "soon"}, `invalid value "soon" for option --timeout: not a duration such as 90s or 10m`, "git land -h"},
		{[]string{"--timeout=-1s"}, `invalid value "-1s" for option --timeout: not a duration such as 90s or 10m`, "git land -h"},
		{[]string{"--no-wait", "--timeout", "1s"}, "options --no-wait and --timeout exclude each other", "git land -h"},
		{[]string{"--check", "lint"}, "option --check means nothing without -x", "git land -h"},
		{[]string{"resme"}, `"resme" is no command of git land`, "did you mean: git land resume"},
		{[]string{"--force-unverified", "--reason", "WHY"}, `landing unverified is on the record: "WHY" only stands for the reason`, "--reason"},
		{[]string{"reconcile", "--fix", "--reason", "TEXT"}, `what is acknowledged is on the record: "TEXT" only stands for the reason`, "--reason"},
		{[]string{"--reason", "x"}, "option --reason means nothing without --force-unverified", "git land -h"},
		{[]string{"--force-unverified"}, "landing unverified is on the record: the reason is empty", "--reason"},
		{[]string{"--force-unverified", "--reason", " \t"}, "landing unverified is on the record: the reason is empty", "--reason"},
		{[]string{"-m", "x", "--"}, "no path follows --", "leave -- out"},
		{[]string{"-m", "x", "--", "a", ""}, "a path is empty", "use ."},
		{[]string{"verify", "-x", "true", "--record", "pass"}, "a verification comes from -x COMMAND or from --record VERDICT, and from one of them", "git land verify -h"},
		{[]string{"verify", "--record", "maybe"}, `invalid value "maybe" for option --record: not one of pass, fail`, "git land verify -h"},
		{[]string{"verify", "--record", "pass"}, "a verdict from elsewhere needs the name of its check", "--check"},
		{[]string{"verify", "-x", "true", "--tree", someOID}, "option --tree means nothing without --record", "git land verify -h"},
		{[]string{"verify", "--record", "pass", "--check", "ci", "--tree", "HEAD"}, `invalid value "HEAD" for option --tree: not a full object id`, "git land verify -h"},
		{[]string{"verify", "--record", "pass", "--check", "ci", "--tree", someOID, "--", "a"}, "--tree names the whole tree: paths choose nothing from it", "git land verify -h"},
		{[]string{"log", "-n", "0"}, `invalid value "0" for option -n: not a number from 1 to 1073741824`, "git land log -h"},
		{[]string{"log", "-nx"}, `invalid value "x" for option -n: not a number from 1 to 1073741824`, "git land log -h"},
		{[]string{"reconcile", "main"}, `git land reconcile does not understand "main"`, "git land reconcile -h"},
		{[]string{"reconcile", "--reason", "x"}, "option --reason means nothing without --fix", "git land reconcile -h"},
		{[]string{"reconcile", "--fix", "--reason", " "}, "what is acknowledged is on the record: the reason is empty", "--reason"},
		{[]string{"reconcile", "--since", ""}, "option --since has an empty value", "git land reconcile -h"},
	}
}

func leaseUsage() []usageCase {
	return []usageCase{
		{[]string{"main"}, `"main" is no command of git lease`, "one of: acquire, release, run, show, log, recover, break, adopt, freeze, thaw, hook, doctor "},
		{[]string{"run", "-m", "x", "echo", "hi"}, "the command to run goes behind --", "git lease run -m x -- echo hi"},
		{[]string{"break", "main", "--operation", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "breaking a lease is on the record, and needs a reason", "git lease break main --operation 01ARZ3NDEKTSV4RRFFQ69G5FAV --reason WHY"},
		{[]string{"hook"}, "git lease hook wants to know what to do", "git lease hook status   (or: install, uninstall)"},
		{[]string{"help", "main"}, `"main" is no command of git lease`, "git lease -h"},
		{[]string{"help", "aquire"}, `"aquire" is no command of git lease`, "did you mean: git lease acquire -h"},
		{[]string{"resume"}, `"resume" is no command of git lease`, "did you mean: git land resume"},
		{[]string{"acquire", "a", "--", "-x"}, "git lease acquire takes one lease's name, and \"-x\" is one more", "git lease acquire -h"},
		{[]string{"--bogus", "show"}, "git lease show has no option --bogus", "git lease show -h"},
		{[]string{"show", "--format=json"}, "git lease show has no option --format", "git lease show -h"},
		{[]string{"show", "-json"}, "git lease show has no option -j", "git lease show -h"},
		{[]string{"show", "--json=yes"}, "option --json takes no value", "git lease show -h"},
		{[]string{"show", "a", ""}, "the lease's name is empty", "leave it out"},
		{[]string{"log", "a", "b"}, `git lease log takes one lease's name, and "b" is one more`, "git lease log -h"},
		{[]string{"log", "a", "--", "b"}, `git lease log takes one lease's name, and "b" is one more`, "git lease log -h"},
		{[]string{"release", "--remote="}, "option --remote has an empty value", "git lease release -h"},
		{[]string{"acquire", "--wait=5s"}, "option --wait takes no value", "git lease acquire -h"},
		{[]string{"acquire", "--timeout", "5s"}, "option --timeout means nothing without --wait", "git lease acquire --timeout 5s --wait"},
		{[]string{"acquire", "--json", "--format=sh"}, "options --json and --format exclude each other", "git lease acquire -h"},
		{[]string{"acquire", "-m", "--", "a"}, "option --message needs a value", "git lease acquire -h"},
		{[]string{"acquire", "--watch-pid", "0"}, `invalid value "0" for option --watch-pid: not a number from 1 to 1073741824`, "git lease acquire -h"},
		{[]string{"acquire", "--watch-pid="}, "option --watch-pid has an empty value", "git lease acquire -h"},
		{[]string{"acquire", "--watch-pid", "1073741824"}, "--watch-pid: process 1073741824: there is no such process", "git lease acquire -h"},
		{[]string{"recover", "a", "b"}, `git lease recover takes one lease's name, and "b" is one more`, "git lease recover -h"},
		{[]string{"recover", "-m", "x"}, "option --message means nothing without --acquire", "git lease recover -h"},
		{[]string{"recover", "--reason", "x"}, "git lease recover has no option --reason", "git lease recover -h"},
		{[]string{"recover", "--acquire", "--json", "--format=sh"}, "options --json and --format exclude each other", "git lease recover -h"},
		{[]string{"run", "--close=yes", "--", "true"}, "option --close takes no value", "git lease run -h"},
		{[]string{"run", "--timeout=5s", "--", "true"}, "option --timeout means nothing without --wait", "git lease run --timeout=5s --wait -- true"},
		{[]string{"run", "--json", "--", "true"}, "git lease run has no option --json", "git lease run -h"},
		{[]string{"run"}, "there is no command to run", "git lease run [NAME] -- COMMAND..."},
		{[]string{"run", "a", "--"}, "there is no command to run", "git lease run [NAME] -- COMMAND..."},
		{[]string{"run", "--", ""}, "there is no command to run", "git lease run [NAME] -- COMMAND..."},
		{[]string{"run", "make", "test"}, "the command to run goes behind --", "git lease run -- make test"},
		{[]string{"run", "a", "b", "--", "true"}, `"b" is one more lease, and several are named by --name`, "git lease run --name a --name b -- true"},
		{[]string{"run", "--conflict-exit-code", "256", "--", "a"}, `invalid value "256" for option --conflict-exit-code: not a number from 0 to 255`, "git lease run -h"},
		{[]string{"break"}, "breaking a lease needs the holder's operation, and a reason", "git lease show "},
		{[]string{"break", "--reason", "x"}, "breaking a lease needs the holder's operation, and a reason", "git lease show "},
		{[]string{"aquire", "main"}, `"aquire" is no command of git lease`, "did you mean: git lease acquire"},
		{[]string{"break", "--format=sh"}, "option --format means nothing without --acquire", "git lease break -h"},
		{[]string{"adopt", "--reason", "x"}, "option --reason means nothing without --over", "git lease adopt -h"},
		{[]string{"adopt", "--over", "52f0"}, `invalid value "52f0" for option --over: not a full object id`, "git lease adopt -h"},
	}
}

// Usage errors are found before anything is looked at: there is no repository
// here. They end with 129, on standard error alone, with a hint.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, c := range landUsage() {
		c.check(t, GitLand)
	}
	for _, c := range leaseUsage() {
		c.check(t, GitLease)
	}
}

func (c usageCase) check(t *testing.T, tool func(context.Context, []string, Env) int) {
	t.Helper()
	code, stdout, stderr := nowhere(t, tool, c.args...)
	said, hint, _ := strings.Cut(stderr, "\n")
	name, says, _ := strings.Cut(said, ": ")
	if code != 129 || says != c.says || !strings.HasPrefix(hint, "hint: ") || !strings.Contains(hint, c.hint) {
		t.Errorf("%s %q: exit %d\n%s", name, c.args, code, stderr)
	}
	if stdout != "" && !strings.HasSuffix(stdout, "exit 129)\n") && !slices.Contains(c.args, "--json") {
		t.Errorf("%s %q printed %q", name, c.args, stdout)
	}
	if !slices.Contains(c.args, "--json") && !slices.Contains(c.args, "--") {
		_, stdout, _ = nowhere(t, tool, append(c.args, "--json")...)
		var told struct {
			Error struct{ Code, Message, Hint string }
		}
		err := json.Unmarshal([]byte(stdout), &told)
		if c.args[0] != "run" && (err != nil || told.Error.Code != "usage" || told.Error.Message == "" || told.Error.Hint == "") {
			t.Errorf("%s %q --json printed %s", name, c.args, stdout)
		}
	}
}

// nowhere runs a tool with arguments that must not need a repository.
func nowhere(t *testing.T, tool func(context.Context, []string, Env) int, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = tool(t.Context(), args, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Dir: "/nowhere", Now: time.Now})
	return code, out.String(), errs.String()
}
