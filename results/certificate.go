package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hammerlock/certify"
	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/human"
)

// CertificateFile has proofs of a saved run's verdicts. Package certify can check them without package checker.
const CertificateFile = "certificate.jsonl"

// JudgeCertified judges a history and writes proofs of its verdicts.
func JudgeCertified(h *history.History, certificate io.Writer) ([]checker.Verdict, error) {
	c, err := checker.Prepare(h)
	if err != nil {
		return nil, err
	}
	defer c.Free()
	verdicts, err := checker.Judge(c)
	return verdicts, errors.Join(err, c.WriteCertificate(certificate, verdicts, contradict))
}

// contradict reports whether package certify, too, finds no legal order of these calls.
func contradict(part *history.History, calls []string) bool {
	var text bytes.Buffer
	if history.WriteJSONL(&text, part) != nil {
		return false
	}
	h, err := certify.Read(&text)
	return err == nil && h.Contradict(calls)
}

// Certify checks the certificate of a history. If a line of the certificate is invalid, the error has the line's
// number.
func Certify(h *history.History, certificate io.Reader) ([]certify.Verdict, error) {
	lines, in := io.Pipe()
	go func() { in.CloseWithError(history.WriteJSONL(in, h)) }()
	defer lines.Close()
	read, err := certify.Read(lines)
	if err != nil {
		return nil, err
	}
	return read.Check(certificate)
}

// mostCertified is the largest number of operations of a history that is certified at the end of a run. The command
// "verify certify" checks longer histories.
const mostCertified = 200_000

// judgeFile judges the history in a file, writes the proofs beside it, and returns a text about the certified
// verdicts. In a read-only directory it writes no proofs.
func judgeFile(file string) (verdicts []checker.Verdict, certified string, err error) {
	h, err := history.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer h.Space.Free()
	name := filepath.Join(filepath.Dir(file), CertificateFile)
	w, err := os.CreateTemp(filepath.Dir(file), CertificateFile+".*")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		verdicts, err = JudgeCertified(h, io.Discard)
		return verdicts, "", err
	} else if err != nil {
		return nil, "", fmt.Errorf("write the certificate: %w", err)
	}
	verdicts, err = JudgeCertified(h, w)
	_, failed := w.Seek(0, io.SeekStart)
	if failed == nil && len(h.Ops) <= mostCertified {
		certified = certifiedText(Certify(h, w))
	}
	if failed = errors.Join(failed, w.Chmod(0o644), w.Close()); failed == nil {
		failed = os.Rename(w.Name(), name)
	}
	if failed != nil {
		err = errors.Join(err, fmt.Errorf("write the certificate: %w", failed), os.Remove(w.Name()))
	}
	return verdicts, certified, err
}

// certifiedText lists the certified verdicts, and the number of operations in the largest proof.
func certifiedText(all []certify.Verdict, err error) string {
	if err != nil {
		return "REFUSED: " + err.Error()
	}
	var proved, not []string
	core := 0
	for _, v := range all {
		switch {
		case v.Proof != "":
			proved = append(proved, v.Checker)
			if v.Status == "fail" {
				core = max(core, len(v.Of))
			}
		case v.Status == "pass" || v.Status == "fail":
			not = append(not, v.Checker)
		}
	}
	text := "none"
	if len(proved) > 0 {
		text = strings.Join(proved, ", ")
	}
	if core > 0 {
		text += fmt.Sprintf(" (a core of %s)", human.Quantity(core, "operation"))
	}
	if len(not) > 0 {
		text += "; without a proof: " + strings.Join(not, ", ")
	}
	return text
}
