#!/bin/sh
# A sweep as a Slurm array. Each task makes a shard; one that was requeued goes on where it stopped.
#
#     job=$(sbatch --parsable slurm.sh path.toml)
#     sbatch --dependency="afterok:$job" --wrap 'anabranch sweep merge shards/* --out whole'
#
#SBATCH --job-name=anabranch
#SBATCH --array=1-32
#SBATCH --cpus-per-task=4
#SBATCH --requeue
set -eu
exec anabranch sweep "$1" --jobs "$SLURM_CPUS_PER_TASK" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --out "shards/$SLURM_ARRAY_TASK_ID"
