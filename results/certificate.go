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

// CertificateFile is the file with the proofs of a saved run's verdicts. Package certify checks them without the
// code of package checker.
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

// contradict reports whether package certify also finds that no order of these calls is legal.
func contradict(part *history.History, calls []string) bool {
	var text bytes.Buffer
	if history.WriteJSONL(&text, part) != nil {
		return false
	}
	h, err := certify.Read(&text)
	return err == nil && h.Contradict(calls)
}

// Certify checks the proofs in a certificate against the history. If a line of the certificate is wrong, the error
// names the line's number.
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

// mostCertified limits the check at the end of a run: it is made only if the history has at most this number of
// operations. The command "verify certify" checks longer histories.
const mostCertified = 200_000

// judgeFile judges the history in a file, and writes the proofs into the same directory if it can. The text
// certified tells which verdicts were certified.
func judgeFile(file string) (verdicts []checker.Verdict, certified string, err error) {
	h, err := OpenHistory(file)
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

// certifiedText tells which verdicts are certified, and how many operations the largest proof has.
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
