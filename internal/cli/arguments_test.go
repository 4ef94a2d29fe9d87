package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"gitland/internal/lease"
)

// show is arguments in one line: the command, its options, operands before
// "--", and what is behind it.
func (a arguments) String() string {
	name := "?"
	if a.command != nil {
		name = a.command.name
	}
	words := []string{name + ":"}
	for _, o := range a.options {
		words = append(words, fmt.Sprintf("%s=%q", o.name, o.value))
	}
	words = append(words, a.operands...)
	if a.cut {
		words = append(append(words, "--"), a.rest...)
	}
	if a.help {
		words = append(words, "(help)")
	}
	if a.version {
		words = append(words, "(version)")
	}
	if a.problem != nil {
		words = append(words, "!", a.problem.What)
	}
	return strings.Join(words, " ")
}

func TestParseArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, line, want string }{
		{"lease", "", ":"},
		{"lease", "show", "show:"},
		{"lease", "show a b", "show: a b"},
		{"lease", "show a --json b", `show: json="true" a b`},
		{"lease", "--json show a", `show: json="true" a`},
		{"lease", "--json", `: json="true"`},
		{"lease", "--remote show show", `show: remote="show"`},
		{"lease", "acquire x -m one --wait --timeout=3s", `acquire: message="one" wait="true" timeout="3s" x`},
		{"lease", "acquire -mone", `acquire: message="one"`},
		{"lease", "acquire -m=one", `acquire: message="=one"`},
		{"lease", "acquire --message=one=two", `acquire: message="one=two"`},
		{"lease", "acquire --message=", `acquire: message=""`},
		{"lease", "acquire -m a,b", `acquire: message="a,b"`},
		{"lease", "acquire -m --json", `acquire: message="--json"`},
		{"lease", "acquire - -m x", `acquire: message="x" -`},
		{"lease", "acquire -- --json", `acquire: -- --json`},
		{"lease", "acquire -m --", `acquire: -- ! option --message needs a value`},
		{"lease", "acquire --message", `acquire: ! option --message needs a value`},
		{"lease", "acquire -hm", `acquire: (help) ! option --message needs a value`},
		{"lease", "acquire -hmx", `acquire: message="x" (help)`},
		{"lease", "acquire --bogus --json", `acquire: json="true" ! git lease acquire has no option --bogus`},
		{"lease", "acquire --reason why x", `acquire: x ! git lease acquire has no option --reason`},
		{"lease", "acquire --format", `acquire: ! option --format needs a value`},
		{"lease", "acquire ---json", `acquire: ! git lease acquire has no option ---json`},
		{"lease", "acquire --m x", `acquire: x ! git lease acquire has no option --m`},
		{"lease", "acquire -é", `acquire: ! git lease acquire has no option -é`},
		{"lease", "acquire show", `acquire: show`},
		{"lease", "run x -m y -- -m z -- w", `run: message="y" x -- -m z -- w`},
		{"lease", "run -- show", `run: -- show`},
		{"lease", "log -n5", `log: n="5"`},
		{"lease", "log -n -1", `log: n="-1"`},
		{"lease", "help", `: (help)`},
		{"lease", "help run", `run: (help)`},
		{"lease", "run help", `run: help`},
		{"lease", "run -h --bogus", `run: (help) ! git lease run has no option --bogus`},
		{"lease", "--version", `: (version)`},
		{"lease", "show --version", `show: ! git lease show has no option --version`},
		{"lease", "bogus --json x", `?: json="true" x ! "bogus" is no command of git lease`},
		{"lease", "help bogus", `?: (help) ! "bogus" is no command of git lease`},
		{"land", "-m a -m b", `: message="a" message="b"`},
		{"land", "-- status", `: -- status`},
		{"land", "status -- status", `status: -- status`},
		{"land", "-m status", `: message="status"`},
		{"land", "-m x status", `status: ! git land status has no option -m`},
		{"land", "-x status status", `status: ! git land status has no option -x`},
		{"land", "main", `: ! "main" is no command of git land, and what it works on goes elsewhere`},
		{"land", "-- -- x", `: -- -- x`},
		{"land", "--no-wait=1", `: ! option --no-wait takes no value`},
		{"land", "--no-json", `: ! git land has no option --no-json`},
		{"land", "-x", `: ! option -x needs a value`},
	} {
		tool := map[string]*tool{"lease": leaseTool(), "land": landTool()}[c.tool]
		if got := parseArguments(tool, strings.Fields(c.line)).String(); got != c.want {
			t.Errorf("git %s %s\n got %s\nwant %s", c.tool, c.line, got, c.want)
		}
	}
}

// The options of a line reach urfave/cli as they were meant, whatever their
// order: that is what the permutation is for.
func FuzzParseArguments(f *testing.F) {
	f.Add("acquire\n-m\n--json\nx\n--\n-m")
	f.Add("--timeout=3s\nacquire\n-mx")
	f.Add("help\nrun\n-h")
	f.Add("acquire\n--json\n0")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		for _, tool := range []*tool{leaseTool(), landTool()} {
			a := parseArguments(tool, args)
			cut := slices.Index(args, "--")
			if a.cut != (cut >= 0) || a.cut && !slices.Equal(a.rest, args[cut+1:]) {
				t.Fatalf("%q: behind -- is %q", args, a.rest)
			}
			if a.command == nil && a.problem == nil {
				t.Fatalf("%q: no command and no problem", args)
			}
			for _, o := range a.options {
				if a.command != nil && a.command.flag(o.name) == nil {
					t.Fatalf("%q: %s has no option %s", args, a.command.name, o.name)
				}
			}
			// Moving an operand to the end changes nothing.
			if a.problem == nil && !a.cut && len(a.operands) > 0 && a.command != tool.root {
				b := parseArguments(tool, append(typed(&a, tool), a.operands...))
				if b.problem != nil || !slices.Equal(a.options, b.options) || !slices.Equal(a.operands, b.operands) && !dashes(a.operands) {
					t.Fatalf("%q: %s, and permuted %s", args, a, b)
				}
			}
		}
	})
}

// typed is a line with its options first, as somebody types it: one that takes no value has
// none, which it has for urfave/cli.
func typed(a *arguments, tool *tool) []string {
	words := a.canonical(tool)[1:]
	for i, o := range a.options {
		if flag := a.command.flag(o.name); !takesValue(flag) {
			words[len(words)-len(a.options)+i] = "--" + o.name
		}
	}
	return words
}

func dashes(operands []string) bool {
	return slices.ContainsFunc(operands, func(o string) bool { return strings.HasPrefix(o, "-") })
}

// Looking for the command, an option has to be understood before it is known
// whose it is.
func TestOptionsOfOneNameAreAlike(t *testing.T) {
	t.Parallel()
	for _, tool := range []*tool{leaseTool(), landTool()} {
		for _, c := range append([]*command{tool.root}, tool.commands...) {
			for _, f := range c.allFlags() {
				for _, n := range f.Names() {
					if other := tool.anyFlag(n); takesValue(other) != takesValue(f) || !slices.Equal(other.Names(), f.Names()) {
						t.Errorf("%s: option %s is another one elsewhere", c.fullName(tool), n)
					}
				}
				if _, slice := f.(*cli.StringSliceFlag); slice && !slices.Contains([]string{"message", "name", "step", "step-check"}, f.Names()[0]) {
					t.Errorf("%s: option %s can be repeated", c.fullName(tool), f.Names()[0])
				}
			}
		}
	}
}

func TestMisspelt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"resme", "resume", true}, {"ressume", "resume", true}, {"resuem", "resume", true}, {"rezume", "resume", true},
		{"esume", "resume", true}, {"resum", "resume", true}, {"resume", "resume", false}, {"rsme", "resume", false},
		{"take", "thaw", false}, {"", "run", false}, {"ab", "ba", true}, {"xyz", "run", false},
	} {
		if got := lease.Misspelt(c.a, c.b); got != c.want {
			t.Errorf("%q for %q: %t", c.a, c.b, got)
		}
	}
}
