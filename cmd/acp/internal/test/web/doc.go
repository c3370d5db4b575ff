// Package web tests the page of the gateway in a browser, against the program and an agent that follows a script.
package web
