// Package browser shows pages in a headless Chromium, if one is installed, and asks what a reader would see. It speaks the
// DevTools protocol over a pipe (https://chromedevtools.github.io/devtools-protocol/), for which nothing but the browser is
// needed.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// ErrNotInstalled is for machines without Chromium.
var ErrNotInstalled = errors.New("there is no chromium on PATH")

// names under which browsers that speak the protocol are installed.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Browser is a running browser with one page.
type Browser struct {
	process *exec.Cmd
	folder  string
	log     *bytes.Buffer
	to      io.WriteCloser
	from    *bufio.Reader

	mutex   sync.Mutex
	last    int
	session string
}

// Start starts a browser, which ends with ctx or at [Browser.Stop]. It reaches no network but what a page names itself.
func Start(ctx context.Context) (*Browser, error) {
	var program string
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, ErrNotInstalled
	}
	folder, err := os.MkdirTemp("", "tideline-browser-")
	if err != nil {
		return nil, err
	}
	b := &Browser{folder: folder, log: &bytes.Buffer{}}
	if err := b.start(ctx, program); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, b.log), b.Stop())
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context, program string) error {
	theirInput, ourOutput, err := os.Pipe()
	if err != nil {
		return err
	}
	ourInput, theirOutput, err := os.Pipe()
	if err != nil {
		return err
	}
	b.to, b.from = ourOutput, bufio.NewReader(ourInput)
	// Without a sandbox, because root may not have one; what it shows is the test's own.
	b.process = exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
		"--user-data-dir="+b.folder, "about:blank")
	// The protocol's ends are file descriptors 3 and 4 of the browser.
	b.process.ExtraFiles = []*os.File{theirInput, theirOutput}
	b.process.Stderr = b.log
	if err := b.process.Start(); err != nil {
		return err
	}
	if err := errors.Join(theirInput.Close(), theirOutput.Close()); err != nil {
		return err
	}
	var target struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	return b.call("Page.enable", nil, nil)
}

// Stop ends the browser and takes its files away.
func (b *Browser) Stop() error {
	if b.process != nil && b.process.Process != nil {
		_ = b.call("Browser.close", nil, nil)
		_ = b.to.Close()
		// How it ended is of no interest.
		_ = b.process.Wait()
	}
	return os.RemoveAll(b.folder)
}

// answer is a message of the browser: an answer, or an event, which has a method.
type answer struct {
	ID     int
	Method string
	Result json.RawMessage
	Error  *struct{ Message string }
}

// call calls a method of the page's session, or of the browser before there is one, and reads its result.
func (b *Browser) call(method string, parameters map[string]any, result any) error {
	return b.exchange(method, parameters, "", result)
}

// exchange calls a method, and reads until its answer came and, if named, an event.
func (b *Browser) exchange(method string, parameters map[string]any, event string, result any) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.last++
	if parameters == nil {
		parameters = map[string]any{}
	}
	message := map[string]any{"id": b.last, "method": method, "params": parameters}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(line, 0)); err != nil {
		return err
	}
	for answered, happened := false, event == ""; ; {
		line, err := b.from.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var a answer
		if err := json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &a); err != nil {
			return err
		}
		switch {
		case a.Method == event && event != "":
			happened = true
		case a.ID != b.last:
			continue
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		default:
			answered = true
			if result != nil {
				if err := json.Unmarshal(a.Result, result); err != nil {
					return err
				}
			}
		}
		if answered && happened {
			return nil
		}
	}
}

// Show opens a page, in a window so many pixels wide, for a reader who prefers light or dark, and waits until it is loaded.
func (b *Browser) Show(url string, width int, scheme string) error {
	if err := b.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false,
	}, nil); err != nil {
		return err
	}
	if err := b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil); err != nil {
		return err
	}
	return b.exchange("Page.navigate", map[string]any{"url": url}, "Page.loadEventFired", nil)
}

// Ask evaluates an expression of JavaScript on the page, also where the page itself may run none, and reads what it is, or what a
// promise is kept with.
func (b *Browser) Ask(expression string, result any) error {
	var evaluated struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := b.call("Runtime.evaluate", map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true,
	}, &evaluated); err != nil {
		return err
	}
	if wrong := evaluated.ExceptionDetails; wrong != nil {
		return fmt.Errorf("%s %s", wrong.Text, wrong.Exception.Description)
	}
	return json.Unmarshal(evaluated.Result.Value, result)
}

// Picture is what the whole page looks like, as PNG.
func (b *Browser) Picture() ([]byte, error) {
	var picture struct{ Data string }
	how := map[string]any{"format": "png", "captureBeyondViewport": true}
	if err := b.call("Page.captureScreenshot", how, &picture); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(picture.Data)
}
