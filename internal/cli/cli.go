// Package cli is what the commands of the program share: how they are run, what their exit codes are, how they find the cluster,
// and how they print.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tideline-io/tideline/internal/platform/text"
)

// Exit codes of every command, beside 0. What else they mean for a command, its help says.
const (
	// ExitFailed is of a command that did not do what it was asked.
	ExitFailed = 1
	// ExitUsage is of a command that was typed wrongly, and did nothing.
	ExitUsage = 2
)

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
	// told holds where the user has read the error already.
	told bool
}

// Usagef is the error of a command that was typed wrongly.
func Usagef(format string, args ...any) error {
	return coded{error: fmt.Errorf(format, args...), code: ExitUsage}
}

// Exit ends the program with a code and says nothing more.
func Exit(code int) error {
	return coded{error: fmt.Errorf("exit code %d", code), code: code, told: true}
}

// Tell prints. If that fails, there is no place left to report it.
func Tell(to io.Writer, words string) { _, _ = io.WriteString(to, words) }

const (
	groupJobs, groupCluster = "jobs", "cluster"
	long                    = `Tideline trains machine-learning jobs on a Kubernetes cluster that Volcano schedules, and lets
them grow into free room.

"tideline run" runs the operator. The other commands ask a cluster, as the user of your kubeconfig.`
)

// ForJobs has the usage list a command for users of jobs.
func ForJobs(c *cobra.Command) *cobra.Command { c.GroupID = groupJobs; return c }

// ForClusters has the usage list a command for administrators.
func ForClusters(c *cobra.Command) *cobra.Command { c.GroupID = groupCluster; return c }

// Root is the program with its commands. Program is the name by which it was started: kubectl finds kubectl-tideline as a plugin.
func Root(program string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "tideline",
		Short:         "Elastic training on Volcano",
		Long:          long,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknown(cmd, args[0])
		},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() {
			return Usagef("%w; flags stand behind a command", err)
		}
		return Usagef("%w", err)
	})
	root.AddGroup(&cobra.Group{ID: groupJobs, Title: "For users of jobs:"},
		&cobra.Group{ID: groupCluster, Title: "For administrators of the cluster:"})
	root.AddCommand(commands...)
	root.SetHelpCommand(helpCommand(root))
	if strings.HasPrefix(filepath.Base(program), "kubectl-") {
		asPlugin(root)
	}
	return root
}

// helpCommand is `tideline help`. That of package cobra takes a command that does not exist for none.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				if len(args) == 0 && c.IsAvailableCommand() && strings.HasPrefix(c.Name(), begun) {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, _, err := root.Find(args)
			switch {
			case err != nil:
				return err
			case cmd == root && len(args) > 0:
				return unknown(root, args[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// asPlugin has usage and examples name the program as kubectl's users type it.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tideline"}
	for _, c := range root.Commands() {
		c.Example = strings.ReplaceAll(c.Example, " tideline ", " kubectl tideline ")
	}
}

// completer is the name by which kubectl starts a program that completes the words of this plugin.
const completer = "kubectl_complete-tideline"

// ReadArguments returns those of a command line. Started as kubectl_complete-tideline the program completes words.
func ReadArguments(line []string) []string {
	if filepath.Base(line[0]) == completer {
		return slices.Concat([]string{cobra.ShellCompRequestCmd}, line[1:])
	}
	return line[1:]
}

// addCompletion adds the command that prints scripts for shells, once it is known where it prints.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil || completion == root {
		return
	}
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(cmd, args[0])
		}
		return cmd.Help()
	}
	if root.DisplayName() == root.Name() {
		return
	}
	completion.Long += `

kubectl completes the words of a plugin by a program on PATH, which is this one by another name:
  ln -s "$(command -v kubectl-tideline)" ~/.local/bin/` + completer + `
`
}

// unknown is the error of a command that does not exist.
func unknown(parent *cobra.Command, name string) error {
	if known := parent.SuggestionsFor(name); len(known) > 0 {
		return Usagef("there is no command %q; did you mean %s?", name, strings.Join(known, " or "))
	}
	return Usagef("there is no command %q", name)
}

// Execute runs the program with its arguments, and returns the exit code. Errors go to errs, one line each.
func Execute(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) int {
	if former, found := formerForm(root, args); found {
		Tell(errs, "Warning: flags without a command run the operator in this version only; write: "+root.CommandPath()+" run\n")
		args = former
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	addCompletion(root)
	root.SetArgs(slices.Concat([]string{}, args)) // nil would have it read the process's own
	cmd, err := root.ExecuteContextC(ctx)
	var c coded
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &c):
		Tell(errs, text.SingleLine(cmd.CommandPath()+": "+err.Error())+"\n")
		return ExitFailed
	case !c.told:
		Tell(errs, text.SingleLine(cmd.CommandPath()+": "+err.Error())+"; -h says more\n")
	}
	return c.code
}

// formerForm turns `tideline --flag...`, which ran the operator before there was a command for it, into `tideline run --flag...`.
// Package flag took flags with one dash as well. Flag --context is new: who types it alone wants another command.
func formerForm(root *cobra.Command, args []string) ([]string, bool) {
	run, _, err := root.Find([]string{"run"})
	if err != nil || len(args) == 0 || slices.ContainsFunc(args, func(arg string) bool {
		return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == arg })
	}) {
		return nil, false
	}
	known := func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return strings.HasPrefix(arg, "-") && run.Flags().Lookup(name) != nil && name != "help" && name != "context"
	}
	if !known(args[0]) {
		return nil, false
	}
	former := []string{"run"}
	for _, arg := range args {
		if known(arg) {
			arg = "--" + strings.TrimLeft(arg, "-")
		}
		former = append(former, arg)
	}
	return former, true
}

// NoArguments is for commands that take flags only.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%q is no flag: flags begin with --, and a value follows its flag after =", args[0])
	}
	return nil
}

// Output is flag -o of a command, whose answer people read or programs.
type Output struct{ format string }

// AddFlag adds the flag.
func (o *Output) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "`format` of the answer: json; text by default")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
}

// String is the format.
func (o *Output) String() string { return o.format }

// Type is the format's kind, for package pflag.
func (*Output) Type() string { return "string" }

// Set takes the format.
func (o *Output) Set(format string) error {
	if format != "json" {
		return errors.New("the only format besides text is json")
	}
	o.format = format
	return nil
}

// JSON tells whether a program is to read the answer.
func (o *Output) JSON() bool { return o.format == "json" }

// PrintJSON prints an answer for programs.
func PrintJSON(to io.Writer, answer any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}
