package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hammerlock/certify"
	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

func (e Env) certifyCommand() *cobra.Command {
	c := &cobra.Command{Use: "certify RUN|FILE",
		Short: "check the proofs of the verdicts on a saved history", Args: e.takes(1, 1),
		ValidArgsFunction: completeRuns,
		Long: "certify checks the certificate of a saved run with a small program that shares no code with the\n" +
			"judge: the instants of all calls where a verdict passed, a few calls that contradict each other\n" +
			"where it failed. A history in a file is judged first, unless --certificate names its certificate.\n" +
			"The exit code is 0 if each proof holds, and 1 if the certificate is refused.",
		Example: "  verify certify latest\n  verify certify history.jsonl --certificate certificate.jsonl",
	}
	o := newOptions(c, harness.Default())
	o.out("where runs are saved")
	file := ""
	o.Text(flag(session, "certificate", "the certificate of a history that is no saved run"), "file", &file)
	return e.command(c, o, func(ctx context.Context, args []string) int {
		path, err := locateOne(args[0], o.plan.Out)
		if err = errors.Join(o.invalid(), err); err != nil {
			return e.refuse(ctx, o, err)
		}
		h, _, err := openHistory(path)
		if err != nil {
			return e.refuse(ctx, o, err)
		}
		defer h.Space.Free()
		if info, err := os.Stat(path); err == nil && info.IsDir() && file == "" {
			file = filepath.Join(path, results.CertificateFile)
		}
		all, refused, err := e.certify(h, file)
		if err != nil {
			return e.refuse(ctx, o, err)
		}
		return e.showCertified(all, refused)
	})
}

// certify checks a certificate, the proof of each verdict, against the history. If there is no certificate, it judges
// the history, which makes one. The result refused is the reason why the certificate is wrong; nil if it is right.
func (e Env) certify(h *history.History, file string) (all []certify.Verdict, refused, err error) {
	var in io.Reader
	f, err := os.Open(file)
	switch {
	case err == nil:
		defer f.Close()
		in = f
	case file != "" && !errors.Is(err, os.ErrNotExist), file != "" && filepath.Base(file) != results.CertificateFile:
		return nil, nil, usage("%v", err)
	default:
		var text bytes.Buffer
		if _, err := results.JudgeCertified(h, &text); err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(e.Stderr, "note: there is no certificate: the history was judged now")
		in = &text
	}
	all, refused = results.Certify(h, in)
	return all, refused, nil
}

// showCertified prints each verdict with its certification or, if the argument refused is not nil, the line of the
// certificate that is wrong. It returns the exit code.
func (e Env) showCertified(all []certify.Verdict, refused error) int {
	if refused != nil {
		fmt.Fprintf(e.Stdout, "REFUSED    %v\n", refused)
		return 1
	}
	for _, v := range all {
		switch {
		case v.Proof != "":
			of := ""
			for _, id := range v.Of {
				of += " " + id
			}
			fmt.Fprintf(e.Stdout, "CERTIFIED  %-15s %-12s %s: %s%s\n", v.Checker, v.Status, v.Proof,
				certify.Says(v.Proof), of)
		default:
			fmt.Fprintf(e.Stdout, "-          %-15s %-12s not certified, because %s\n", v.Checker, v.Status, v.Why)
		}
	}
	return 0
}
