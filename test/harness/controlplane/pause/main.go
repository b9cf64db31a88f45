// Command pause is the only program in the images that real nodes run: it does
// nothing until it is asked to end. As sh or true it is done at once, whatever the script.
package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if name := filepath.Base(os.Args[0]); name == "sh" || name == "true" {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
}
