package cli

import (
	"bufio"
	"context"
	"io"

	"github.com/spf13/cobra"

	"hammerlock/internal/fleet"
	"hammerlock/internal/harness"
	"hammerlock/topologies"
)

func (e Env) agentCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "agent", Short: "work for a coordinator on another machine: see --agents", Args: e.takes(0, 0),
		Long: "agent joins a coordinator, a bench or verify with --agents, and lets workers of its runs work on\n" +
			"this machine. It waits for a coordinator, serves one run after the other, and ends only if the\n" +
			"coordinator cannot use it: it has another version or token. It dials out and listens nowhere. Its\n" +
			"orders are data: it runs what it has in itself, and no commands. docs/FLEET.md says how to start it\n" +
			"on several machines.",
		Example: "  openssl rand -hex 24 > token\n" +
			"  verify --agents 2 --listen 10.0.0.1:4222 --token-file token --addr 10.0.0.9:6379 --lock lease\n" +
			"  verify agent --join nats://10.0.0.1:4222 --token-file token     # on each of two machines",
	}
	o := newOptions(c, harness.Plan{})
	var w fleet.AgentOptions
	var tokenFile string
	o.nats(flag(session, "join", "the coordinator, as in nats://10.0.0.1:4222"), &w.Join)
	o.Text(flag(session, "token-file",
		"a file with the token; - reads it from the first line of the input, whose end ends the agent"), "path",
		&tokenFile)
	o.login(&w.Login)
	o.Text(flag(session, "name", "what it is called (default: the name of the machine)"), "name", &w.Name)
	o.Toggle(flag(session, "quiet", "do not tell what goes on"), "q", &o.quiet)
	return e.command(c, o, interruptible(func(_ context.Context, s signals, _ []string) int {
		ctx, end := context.WithCancel(s.stop)
		defer end()
		if tokenFile != "" || w.Login.Creds == "" {
			w.Token = e.agentToken(o, tokenFile, end)
		}
		if w.Join == "" {
			o.Mistake("join", ": the address of a coordinator, as in nats://10.0.0.1:4222")
		}
		if err := o.invalid(); err != nil {
			return e.refuse(ctx, o, err)
		}
		spawner := topologies.OpenSpawner()
		defer spawner.Close()
		w.Version, w.Known, w.Spawn = harness.Version(), e.knows(), spawner.Start
		w.Say = func(line string) { e.say(o, "%s", line) }
		if err := fleet.Work(ctx, w); err != nil {
			e.complain(err)
			return Usage
		}
		return Passed
	}))
}

// agentToken reads the secret with which an agent joins. If it comes from standard input, end is called when the
// input closes, so that the agent ends with its coordinator.
func (e Env) agentToken(o *options, file string, end func()) fleet.Token {
	var token fleet.Token
	var err error
	switch file {
	case "":
		o.Mistake("token-file",
			": the file with the token of the coordinator; or --creds, where it uses NATS servers of others")
		return ""
	case "-":
		input := bufio.NewReader(e.Stdin)
		line, _ := input.ReadString('\n')
		token, err = fleet.ParseToken(line)
		go func() {
			_, _ = io.Copy(io.Discard, input) // blocks until the input is closed
			end()
		}()
	default:
		token, err = fleet.ReadToken(file)
	}
	if err != nil {
		o.Mistake("token-file", "%s: %v", file, err)
	}
	return token
}
