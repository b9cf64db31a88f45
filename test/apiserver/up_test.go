package apiserver_test

import "testing"

func TestUp(t *testing.T) { t.Log(warmpool.HealthURL) }
