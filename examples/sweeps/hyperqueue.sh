#!/bin/sh
# A sweep on HyperQueue: hyperqueue.sh path.toml SHARDS. A server and workers run already (hq server start,
# hq worker start). Each task makes a shard; one whose worker was lost goes on where it stopped.
set -eu
scenario=$1 shards=$2
# The inner shell is the task's: it reads what HyperQueue gives it.
# shellcheck disable=SC2016
hq submit --array "1-$shards" --cpus 4 --wait sh -c \
    'exec anabranch sweep "$1" --jobs 4 --shard "$HQ_TASK_ID/$2" --out "shards/$HQ_TASK_ID"' sh "$scenario" "$shards"
exec anabranch sweep merge shards/* --out whole
