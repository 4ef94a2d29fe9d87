package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
)

// parts are the leases that were named, each at its authority. done ends the use of these.
func (c *call) parts(ctx context.Context) (parts []lease.Part, done func(), err error) {
	var open []*ledger.Ledger
	done = func() {
		for _, l := range open {
			closing(ctx, l)
		}
	}
	named, err := c.named()
	if err != nil {
		return nil, done, err
	}
	for _, n := range named {
		l, err := c.open(ctx, n.remote, c.in.operands...)
		if err != nil {
			return nil, done, err
		}
		if i := slices.IndexFunc(open, func(o *ledger.Ledger) bool { return o.Remote == l.Remote }); i >= 0 {
			l.Repo.Close()
			l = open[i]
		} else {
			open = append(open, l)
		}
		parts = append(parts, lease.Part{Ledger: l, Want: c.want(n.name)})
	}
	return parts, done, nil
}

// A leaseName is a lease as it was named; "" stands for the usual choice.
type leaseName struct{ remote, name string }

// named are the leases that were named, as an operand or by --name; at least one.
func (c *call) named() ([]leaseName, error) {
	given := c.opts.StringSlice("name")
	switch {
	case len(given) == 0:
		return []leaseName{{name: one(c.in.operands)}}, nil
	case len(c.in.operands) > 0:
		return nil, fault.New(fault.Usage, "%q is a lease as well, and those are named by --name where that is used", c.in.operands[0]).
			WithHint("%s", c.line(c.byOption()...))
	}
	var list []leaseName
	for _, text := range given {
		remote, name, found := strings.Cut(text, ":")
		if !found {
			remote, name = "", text
		}
		if name == "" {
			return nil, fault.New(fault.Usage, "option --name: %q names a remote and no lease of it", text).
				WithHint("%s", c.line(c.instead(len(list), "--name", text+"NAME")...))
		}
		list = append(list, leaseName{remote, name})
	}
	return list, nil
}

// once gives the refusal of a lease that is named twice the command line that names it once.
func (c *call) once(err error) error {
	twice, is := errors.AsType[lease.NamedTwice](err)
	if f, ok := errors.AsType[*fault.Error](err); ok && is {
		f.WithHint("%s", c.line(c.instead(int(twice))...))
	}
	return err
}

// instead are the arguments of this call with other words in place of the nth --name,
// counted from 0.
func (c *call) instead(n int, words ...string) []string {
	for i := 0; i < len(c.args); i++ {
		end := i + 1
		if wantsNext(c.args[i], c.anyFlag) {
			end++
		}
		if c.args[i] == "--name" || strings.HasPrefix(c.args[i], "--name=") {
			if n--; n < 0 {
				return slices.Replace(slices.Clone(c.args), i, end, words...)
			}
		}
		i = end - 1
	}
	return c.args
}

// byOption are the arguments of this call with its operands as values of --name.
func (c *call) byOption() []string {
	var args []string
	named := false // the command
	for i := 0; i < len(c.args); i++ {
		switch {
		case c.args[i] == "--":
			return append(args, c.args[i:]...)
		case isOption(c.args[i]):
			if wantsNext(c.args[i], c.anyFlag) && i+1 < len(c.args) {
				args = append(args, c.args[i])
				i++
			}
		case named:
			args = append(args, "--name")
		default:
			named = true
		}
		args = append(args, c.args[i])
	}
	return args
}
