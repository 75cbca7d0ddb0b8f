// A scheduler's loop in Node: every few seconds, how many workers should each job get?
//   node scheduler.js HOST:PORT SECONDS ROUNDS PROFILE...
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const grpc = require("@grpc/grpc-js");
const { loadSync } = require("@grpc/proto-loader");

const protos = path.join(__dirname, "../../proto");
const contract = loadSync("stepcast/v1/prediction_service.proto", { includeDirs: [protos], defaults: true });
const { PredictionService } = grpc.loadPackageDefinition(contract).stepcast.v1;

async function main(server, seconds, rounds, ...jobs) {
  const predictions = new PredictionService(server, grpc.credentials.createInsecure());
  const ask = (job) =>
    new Promise((resolve) => {
      const began = performance.now();
      const request = { profile: `profiles/${job}`, options: { timeBudget: { seconds: 1 } } };
      predictions.RecommendWorkers(request, { deadline: Date.now() + 2000 }, (error, reply) => {
        if (error) return resolve(`${job}: ${grpc.status[error.code]}`);
        const rate = reply.prediction.examplesPerSecond.toFixed(6);
        resolve(`${job}: ${reply.workers} workers, ${rate} examples/s, ${(performance.now() - began).toFixed(6)} ms`);
      });
    });
  for (let round = 0; round < Number(rounds); ++round) {
    const began = performance.now();
    for (const answer of await Promise.all(jobs.map(ask))) console.log(answer);
    console.log(`round: ${(performance.now() - began).toFixed(6)} ms`);
    await sleep(1000 * Number(seconds));
  }
  predictions.close();
}

main(...process.argv.slice(2));
